#pragma once
/// StopAlongTree: a last step for workers all of which are needed.

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "gossamer/engine/seating.h"
#include "gossamer/engine/stop_talk.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// The news goes along a tree. The largest bid of a subtree goes up once it is known; the root's
/// goes down again. The messages are two per neighbour in the tree and way.
class StopAlongTree final : public StopTalk {
 public:
  /// Expects news from the neighbours in the tree, to which collectives talk anyway. The transport
  /// must outlive this.
  explicit StopAlongTree(Transport& transport);
  /// Neighbours that wait for the agreed step have got it before, if they still live.
  ~StopAlongTree() override;
  StopAlongTree(const StopAlongTree&) = delete;
  StopAlongTree& operator=(const StopAlongTree&) = delete;

  int hear() override;
  void begin(std::int64_t bid, int signal) override;
  std::optional<std::int64_t> last_step() const override { return last_step_; }
  std::exception_ptr lost() const override { return lost_; }

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
  void pass_on();

  Transport& transport_;
  const Tree tree_;
  std::vector<std::unique_ptr<Ear>> ears_;
  std::vector<std::unique_ptr<Mouth>> mouths_;
  int signal_ = 0;  ///< the first that was heard
  bool has_begun_ = false;
  std::int64_t largest_ = 0;  ///< of this worker and of the children that have said theirs
  std::size_t heard_ = 0;     ///< children that have
  bool has_gone_up_ = false;
  std::optional<std::int64_t> last_step_;
  std::exception_ptr lost_;
};

}  // namespace gossamer
