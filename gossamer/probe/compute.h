#pragma once
/// How long the workers of a job compute, from steps that each of them has timed.

#include <vector>

#include "gossamer/engine/collectives.h"
#include "gossamer/model/compute_times.h"

namespace gossamer {

/// What one worker has timed while all computed and nobody talked; seconds.
struct TimedStep {
  double forward_s = 0;   ///< until the first gradient
  double backward_s = 0;  ///< from then on
  double update_s = 0;    ///< of the optimizer
};

/// What the steps of all workers say together.
struct ProbedCompute {
  ComputeTimes times;          ///< of forward and backward, without factors
  double forward_share = 0;    ///< of the mean
  double update_s = 0;         ///< mean
  std::vector<double> speeds;  ///< by worker, the same on one host; 1: as the mean
};

/// Means over all steps of all workers. The deviation is that of a worker's steps around its own
/// mean. Hosts that are less than 3 %, or three standard errors, from the mean are taken for equal.
/// Throws std::invalid_argument for a worker without steps, on all. Collective.
ProbedCompute merge_steps(Collectives& collectives, const std::vector<TimedStep>& steps);

}  // namespace gossamer
