#pragma once
/// Census: who is there, agreed on beside the steps, for whom the rounds are then formed anew.

#include <cstdint>
#include <optional>

#include "gossamer/engine/census_steps.h"
#include "gossamer/engine/council.h"
#include "gossamer/engine/seating.h"

namespace gossamer {

/// Note [Rounds formed anew]: where an edge of a lost worker is only off, two losses part a ring,
/// and the others of its group never average again. So every kStepsOfACensus steps all workers
/// begin to agree who is there, as for a collective call; see Note [Who takes part]. The messages
/// travel beside the steps, of which nobody waits for them. All know the outcome when the next
/// census begins; whoever does not waits. From there on exchanges are among those that it counted,
/// by the topology formed anew for as many, but for those that are under way or expected already.
/// A worker that has come back is alone until it has been counted: it cannot know by which rounds
/// the others go. So its edges stay off until then, at both ends; see steps_before_edges().
class Census {
 public:
  /// The transport, `lost` and `lookout` must outlive this.
  Census(Transport& transport, Seating everybody, LostPeers& lost, Lookout& lookout,
         double timeout_s, const WhileWaiting& while_waiting);

  /// Between two steps, after so many: who exchanges from now on, where a census has just ended.
  /// Throws TransportError as Council does.
  std::optional<Seating> look(std::int64_t steps);
  /// As often as one likes, while the worker waits for something else.
  void look();

 private:
  enum class State { none, decides, ends, over };

  void tell_of_lost(const Seating& counted);

  Council council_;
  LostPeers& lost_;
  const Seating everybody_;
  State state_ = State::none;
  std::int64_t begun_ = 0;  ///< after so many steps
};

}  // namespace gossamer
