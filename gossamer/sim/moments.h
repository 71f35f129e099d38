#pragma once
/// When things happen within a step of one worker.

#include <cstddef>
#include <vector>

#include "gossamer/model/even_buckets.h"
#include "gossamer/model/workload.h"
#include "gossamer/sim/sim_time.h"

namespace gossamer {

/// The moments of a step, from its begin: the end of the forward, then of each bucket's backward,
/// which takes its elements' share of the backward.
struct ComputeMoments {
  SimTime forward{0};
  std::vector<SimTime> backward;
};
ComputeMoments moments_of(const Workload& workload, SimTime compute);

/// A bucket's part of the update, by its elements.
SimTime update_time(const Workload& workload, std::size_t bucket);

}  // namespace gossamer
