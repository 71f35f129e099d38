#pragma once
/// What a worker says of those that are lost.

#include <vector>

#include "gossamer/engine/options.h"

namespace gossamer {

/// A line for each worker that this one goes on without, whose ranks it returns; of the lowest rank
/// one for whom the topology is formed anew.
std::vector<int> say_changes(int rank, const StepReport& report);

}  // namespace gossamer
