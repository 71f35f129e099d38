#pragma once
/// The runtime model against what was published: up to three constants for each kind of hardware.

#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/graph/schedule.h"
#include "gossamer/model/fit.h"
#include "gossamer/model/step_time.h"

namespace gossamer {

/// ω of AER by flat groups over n = H·L workers: half of the steps' traffic crosses, in ring
/// all-reduces over 2L workers, against one over all n: ½ · [(2L − 1)/2L] / [(n − 1)/n].
double omega_of_flat_aer(const HostShape& shape);

/// ω of any schedule from the bytes of its plans, mean over the rounds of the host that sends most:
/// groups as flat rings, against one flat ring over all.
double omega_of_bytes(const Schedule& schedule);

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

/// A fit, and what in it is not fitted.
struct PublishedCase {
  FitProblem problem;
  std::vector<std::pair<std::string, double>> predicted;  ///< numbers that follow from bytes
  std::string note;                                       ///< sentences: how to take the outcome
};

/// Poster, one fit for each task: γ and σ; ω is omega_of_bytes(), the ring being the one-peer ring.
/// Residuals in speed-up (0.01 is a point). Fig. 6, one fit for each hardware: step = share·8/n +
/// fixed of computing, payload of the link; all in ms. σ = .1 and 5 buckets. Relative
/// residuals. Communication with 256 GPUs: latency of all-reduce and of a partial
/// average, and time per million parameters that cross, of which an all-reduce moves 2(n − 1)/n and
/// a partial average 1. ImageNet: host-hours = compute + growth·hosts for all-reduce, compute +
/// exchange·neighbours else.
std::vector<PublishedCase> published_cases();

}  // namespace gossamer
