#pragma once
/// Schedules for some of the workers that they were made for.

#include <cstdint>
#include <vector>

#include "gossamer/graph/schedule.h"

namespace gossamer {

/// The rounds among the workers at `positions`, ascending, of a schedule; these are on the hosts of
/// `shape`, and are counted anew. Groups average those who are left. What would travel to or from
/// another worker stays: with who would send it where columns of W sum to 1 only, else with who
/// would receive it. So symmetric W stay doubly stochastic, and columns keep their sums.
Schedule among(Schedule schedule, std::vector<int> positions, const HostShape& shape);

/// By how many of its first rounds a schedule is judged: those of a period; where they never repeat
/// some of them.
std::int64_t rounds_looked_at(const Schedule& schedule);

/// Whether what a worker has gets to all others, over rounds_looked_at().
bool is_connected(const Schedule& schedule);

}  // namespace gossamer
