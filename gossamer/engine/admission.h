#pragma once
/// Admission: how those that are there let in a worker that was lost.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/clock.h"
#include "gossamer/engine/lost_peers.h"
#include "gossamer/engine/reception.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// How many steps a worker has lately done in a short time, at most.
class Pace {
 public:
  static constexpr std::chrono::milliseconds kSpan{100};
  void look(std::int64_t steps, Clock::time_point now);
  std::int64_t most() const;

 private:
  Clock::time_point begin_{};  ///< of the span that is counted now
  std::int64_t before_ = -1;   ///< steps done when it began; below 0: none has begun
  std::int64_t in_it_ = 0;
  double most_ = 0;  ///< of earlier ones; a little less with each
};

/// The part of a worker that is there.
class Admission {
 public:
  /// Both must outlive this. `agrees`: those that are there agree on who is, and a newcomer counts
  /// from then on; else at once. See Note [Cut off]. `there`: the ranks that this worker takes to
  /// be there, itself included; null: it does not say.
  Admission(Transport& transport, LostPeers& lost, bool agrees,
            std::function<std::vector<int>()> there = nullptr)
      : transport_(transport),
        lost_(lost),
        agrees_(agrees),
        there_(std::move(there)),
        reception_(std::make_unique<Reception>(transport)) {}
  /// Of a worker that has come back itself: goes on with those who have asked it meanwhile.
  void go_on_with(std::unique_ptr<Reception> reception) { reception_ = std::move(reception); }

  /// Between two steps, after so many: answers what has been asked. The next two steps may have
  /// begun.
  void look(std::int64_t steps);
  /// Who waits for give_state().
  std::vector<int> waiting_for_state();
  /// The state after so many steps; leaves beside the next steps. Empty: it cannot be had here.
  void give_state(int peer, std::int64_t steps, std::string state);

 private:
  std::uint64_t there_without(int guest) const;

  Transport& transport_;
  LostPeers& lost_;
  const bool agrees_;
  const std::function<std::vector<int>()> there_;
  std::unique_ptr<Reception> reception_;
  Pace pace_;
};

}  // namespace gossamer
