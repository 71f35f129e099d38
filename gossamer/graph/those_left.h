#pragma once
/// Schedules for some of the workers that they were made for.

#include <vector>

#include "gossamer/graph/schedule.h"

namespace gossamer {

/// The rounds among the workers at `positions`, ascending, of a schedule; these are on the hosts of
/// `shape`, and are counted anew. Groups average those who are left. What would travel to or from
/// another worker stays: with who would send it where columns of W sum to 1 only, else with who
/// would receive it. So symmetric W stay doubly stochastic, and columns keep their sums.
Schedule among(Schedule schedule, std::vector<int> positions, const HostShape& shape);

/// Whether what a worker has gets to all others, over the rounds of a period, or over the first
/// ones where they never repeat.
bool is_connected(const Schedule& schedule);

}  // namespace gossamer
