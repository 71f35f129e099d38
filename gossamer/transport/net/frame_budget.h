#pragma once
/// FrameBudget: how many useless frames a peer may still send.

#include <algorithm>
#include <cstdint>

#include "gossamer/transport/net/frame.h"

namespace gossamer {

/// Note [Useless frames]: to handle a frame takes time for which the frames of other peers wait,
/// however few bytes it has. Frames of a plan begin or end a payload, at once or later. Of others a
/// peer may send as many at once as it may have open; then it is not read until the next beat, and
/// the system holds it up. Its next generation goes on from there.
class FrameBudget {
 public:
  /// A frame has come; it is useless until it is counted as used.
  void count() { ++useless_; }
  /// A frame has begun or ended a payload.
  void count_use() { useless_ = std::max<std::int64_t>(useless_ - 1, 0); }
  /// A beat has passed.
  void refill() { useless_ = std::max<std::int64_t>(useless_ - kUselessPerBeat, 0); }
  bool is_spent() const { return useless_ > static_cast<std::int64_t>(kMostOpen); }
  /// For a later generation of the peer, which has done a handshake.
  void continue_from(const FrameBudget& former) { useless_ = former.useless_ + kCostOfHandshake; }

 private:
  // The proofs of a handshake take as much time as so many frames.
  static constexpr std::int64_t kCostOfHandshake = 64;

  std::int64_t useless_ = 0;  ///< frames, less those of beats that have passed
};

}  // namespace gossamer
