#pragma once
/// A schedule as a value: a topology and what modifies it, the same for every door.

#include <cstdint>
#include <string>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/graph/schedule.h"

namespace gossamer {

/// See modifiers.h. They apply in the order of the fields: a global average takes the place of the
/// step that it falls on, whether that mixes or is local.
struct ScheduleSpec {
  std::string topology = "complete";
  std::uint64_t seed = 0;
  int degree = 1;
  std::vector<double> link_rates = {};
  bool lazy = false;
  int rounds_per_step = 1;
  int local_steps = 1;       ///< H: mix in every H-th step only
  int global_average = 0;    ///< 0: never
  int adaptive_average = 0;  ///< the first distance between global averages; 0: never
  bool operator==(const ScheduleSpec&) const = default;
};

/// The schedule with what modifies a topology's. Throws std::invalid_argument for a number out of
/// range.
Schedule modified(Schedule schedule, const ScheduleSpec& spec);

/// Throws std::invalid_argument for an unknown topology, a number out of range, and hosts that the
/// topology cannot serve.
Schedule make_schedule(const ScheduleSpec& spec, const HostShape& shape);

/// What modifies the topology, as `name=value` words in the order in which it applies.
std::vector<std::string> modifiers_of(const ScheduleSpec& spec);

}  // namespace gossamer
