#pragma once
/// What a simulated run does: how its workers average, and what they do about late ones.

#include <cstdint>
#include <string_view>

#include "gossamer/base/codec.h"
#include "gossamer/exchange/plan.h"
#include "gossamer/graph/schedule.h"

namespace gossamer {

enum class SimPattern {
  /// Combine while adapt: a bucket's exchange is launched once it is updated, and its next update
  /// waits for it.
  cwa,
  /// The parameters as in cwa, but launched at the end of a step; then the gradients, through the
  /// same rounds, as soon as a bucket's are there and its parameters are mixed. It is updated when
  /// they have come.
  gradient_gossip,
  /// The finished average of all workers' gradients; a bucket's exchange is launched in the
  /// backward as soon as its gradient is there, and all updates follow the backward.
  allreduce,
  /// As DistributedDataParallel does it: ring all-reduces over the ranks, one bucket after the
  /// other, and one update when all are there.
  ddp,
};

/// That of the engine's pattern; "ddp" is none.
std::string_view name_of(SimPattern pattern);

/// Whether it follows a schedule; the others average over all.
constexpr bool gossips(SimPattern pattern) {
  return pattern == SimPattern::cwa || pattern == SimPattern::gradient_gossip;
}

/// A bucket's exchanges per step.
constexpr int stages(SimPattern pattern) { return pattern == SimPattern::gradient_gossip ? 2 : 1; }

/// When buckets of a pattern that gossips are mixed.
enum class SimUpdate {
  step,      ///< after the backward, those first whose exchange has ended
  backward,  ///< each within the backward, as soon as its gradient is there, in order
};

/// What an update of `cwa` does about payloads that have not come.
enum class SimLate {
  wait,
  skip,  ///< goes on without those that came more than `staleness` of its steps ago
};

struct SimMethod {
  Schedule schedule;  ///< of patterns that gossip
  SimPattern pattern = SimPattern::cwa;
  SimUpdate update = SimUpdate::step;
  GroupMethod group_method = GroupMethod::hierarchical;  ///< of all but ddp
  Codec codec = Codec::fp32;                             ///< between hosts
  bool stagger = true;                                   ///< bucket b follows the schedule at t + b
  SimLate late = SimLate::wait;
  std::int64_t staleness = 1;
};

/// How the method's rounds are compiled.
PlanOptions plan_options(const SimMethod& method);

/// Throws std::invalid_argument for what the engine could not run on hosts of this shape either,
/// and for schedules that are driven by the loss: there is no loss here.
void check_method(const SimMethod& method, const HostShape& shape);

}  // namespace gossamer
