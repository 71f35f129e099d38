#pragma once
/// StopAgreement: one step after which all workers stop, when any of them is told to.

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// Note [Who stops when]: workers that gossip are apart by some steps, and a scheduler may tell
/// only one of them to stop. Each has a bid: the steps that it has done, with the one under way. A
/// worker that is told to stop, or hears that another one is, fixes its bid and passes the news on
/// along a tree. The largest bid of a subtree goes up once it is known; the root's goes down again,
/// and is what all do. Until a worker knows it, it does no step beyond its bid. Others that wait
/// inside of a step for what it would send then fix their own bids while they wait, so that nobody
/// waits in a circle. The messages are two per neighbour in the tree and way, and none unless
/// somebody stops.
class StopAgreement {
 public:
  /// Expects news from the neighbours in the tree, to which collectives talk anyway.
  explicit StopAgreement(Transport& transport);
  ~StopAgreement();
  StopAgreement(const StopAgreement&) = delete;
  StopAgreement& operator=(const StopAgreement&) = delete;

  /// Hears and passes on. `told`: the signal by which this worker is told to stop; 0: it is not.
  /// `bid`: steps done, with the one under way. To be called between steps, and now and then while
  /// the worker waits for others; from any thread.
  void look(int told, std::int64_t bid);
  /// The steps that all do, once they are known.
  std::optional<std::int64_t> last_step() const;
  /// By which signal this worker, or the one that passed the news on, was told; 0: by none yet.
  int signal() const;
  /// Throws what became of a neighbour without which last_step() will not be known any more.
  void check() const;
  /// Whether another step may begin after `done` ones: not before last_step() is known where this
  /// worker has done as many as it has bid, and not after it.
  bool may_begin(std::int64_t done) const;

 private:
  enum class Word : std::int32_t { stop, largest };

  struct Ear {
    int peer = 0;
    Word word = Word::stop;
    Request request = 0;  ///< 0: it has been heard, or will not be
    std::int64_t value = 0;
  };
  struct Mouth {
    Request request = 0;
    std::int64_t value = 0;
  };

  void say(int peer, Word word, std::int64_t value);
  bool hear(Ear& ear);
  void take(const Ear& ear);
  void fix(int told, std::int64_t bid);
  void pass_on();

  Transport& transport_;
  mutable std::mutex mutex_;  // guards all below
  int parent_ = -1;
  std::vector<int> children_;
  std::vector<std::unique_ptr<Ear>> ears_;
  std::vector<std::unique_ptr<Mouth>> mouths_;
  std::optional<std::int64_t> bid_;
  std::int64_t largest_ = 0;  ///< of this worker and of the children that have said theirs
  std::size_t heard_ = 0;     ///< children that have
  bool has_gone_up_ = false;
  int signal_ = 0;
  std::optional<std::int64_t> last_step_;
  std::exception_ptr lost_;
};

}  // namespace gossamer
