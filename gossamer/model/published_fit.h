#pragma once
/// The runtime model against what was published: up to three constants for each kind of hardware.

#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/graph/schedule.h"
#include "gossamer/model/fit.h"
#include "gossamer/model/step_time.h"

namespace gossamer {

/// ω of AER by flat groups over n = H·L workers: half of the steps' traffic crosses, in ring
/// all-reduces over 2L workers, against one over all n: ½ · [(2L − 1)/2L] / [(n − 1)/n].
double omega_of_flat_aer(const HostShape& shape);

/// What the recursion (max_plus.h) says about a schedule against all-reduce.
struct JitterCase {
  StepRatios ratios;  ///< ω: of the schedule's mean traffic on the busiest link
  double sigma = 0;   ///< standard deviation of normal compute times of mean 1
  std::uint64_t seed = 1;
  int steps = 200;
  int warm_up = 20;
};

/// Both with buckets updated as soon as their gradients are complete, the same compute times, and
/// links between hosts that carry γ and ωγ per step, the mean over a period (where rounds never
/// repeat, over as many as there are steps). Throws std::invalid_argument unless there are two
/// hosts or more.
StepPair step_times_with_jitter(const Schedule& schedule, const JitterCase& c);

/// 1 − T_D/T_AR of them.
double speed_up_with_jitter(const Schedule& schedule, const JitterCase& c);

/// Poster, one fit for each task: γ and σ; ω is 1 for the complete graph, .65 for the (one-peer)
/// ring (which fits the first row), omega_of_flat_aer() for AER. Residuals in speed-up (0.01 is a
/// point). Fig. 6, one fit for each hardware: step = share·8/n + fixed of computing, payload of the
/// link; all in ms. σ = .1 and 5 buckets as in the poster's first row. Relative residuals.
/// Communication with 256 GPUs: latency of all-reduce and of a partial average, and time per
/// million parameters that cross, of which an all-reduce moves 2(n − 1)/n and a partial average 1.
/// ImageNet: host-hours = compute + growth·hosts for all-reduce, compute + exchange·neighbours
/// else.
std::vector<FitProblem> published_problems();

}  // namespace gossamer
