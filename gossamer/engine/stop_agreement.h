#pragma once
/// StopAgreement: one step after which all workers stop, when any of them is told to.

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gossamer/engine/exchange.h"
#include "gossamer/engine/seating.h"
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
  /// Expects news from the neighbours in the tree, to which collectives talk anyway. `done`: steps
  /// that this worker has done.
  explicit StopAgreement(Transport& transport, std::int64_t done = 0);
  /// Neighbours that wait for the agreed step have got it before, if they still live.
  ~StopAgreement();
  StopAgreement(const StopAgreement&) = delete;
  StopAgreement& operator=(const StopAgreement&) = delete;

  /// Hears and passes on. `told`: the signal by which this worker is told to stop; 0: it is not. To
  /// be called now and then while the worker waits for others; from any thread.
  void look(int told);
  /// Whether all stop after the `done` steps that this worker has done; to be called between steps,
  /// by the thread that does them. Waits where that is not known yet, and calls `while_waiting`
  /// meanwhile, which may throw. Where it says no, another step is bid. Throws what became of a
  /// neighbour without which it will not be known any more.
  bool is_last(std::int64_t done, int told, const WhileWaiting& while_waiting = nullptr);
  /// By which signal this worker, or the one that passed the news on, was told; 0: by none yet.
  int signal() const;

 private:
  enum class Word : std::int32_t { stop, largest };

  struct Ear {
    int peer = 0;
    Word word = Word::stop;
    Request request = 0;  ///< 0: it has been heard, or will not be
    std::int64_t value = 0;
  };
  struct Mouth {
    Word word = Word::stop;
    Request request = 0;
    std::int64_t value = 0;
  };

  void say(int peer, Word word, std::int64_t value);
  void deliver();
  bool hear(Ear& ear);
  void take(const Ear& ear);
  void hear_all(int told);
  void fix(int told);
  void pass_on();
  std::optional<bool> ask(std::int64_t done, int told);

  Transport& transport_;
  const Tree tree_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<std::unique_ptr<Ear>> ears_;
  std::vector<std::unique_ptr<Mouth>> mouths_;
  std::int64_t bid_ = 0;
  bool is_fixed_ = false;     ///< the bid, because this worker has heard of a stop
  std::int64_t largest_ = 0;  ///< of this worker and of the children that have said theirs
  std::size_t heard_ = 0;     ///< children that have
  bool has_gone_up_ = false;
  int signal_ = 0;
  std::optional<std::int64_t> last_step_;
  std::exception_ptr lost_;
};

}  // namespace gossamer
