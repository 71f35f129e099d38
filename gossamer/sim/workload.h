#pragma once
/// What workers do in a step: how long they compute, and the buckets they exchange.

#include <cstdint>
#include <vector>

#include "gossamer/base/dtype.h"
#include "gossamer/base/rng.h"
#include "gossamer/sim/sim_time.h"

namespace gossamer {

/// How the compute time of a worker varies from step to step, independently of the others.
enum class ComputeKind {
  constant,
  normal,     ///< never below 0
  lognormal,  ///< with the mean and the deviation asked for
  trace,      ///< as measured
};

struct SimWorkload {
  /// Elements of each bucket, in the order in which the backward completes them.
  std::vector<std::int64_t> buckets;
  DType dtype = DType::f32;
  double compute_s = 0;  ///< mean of forward and backward together
  ComputeKind compute = ComputeKind::constant;
  double sigma = 0;  ///< standard deviation / mean, of normal and lognormal
  /// Seconds by worker and step, for `trace`; what is too short begins again.
  std::vector<std::vector<double>> trace_s;
  std::vector<double> factors;     ///< by worker, on its compute time; empty: 1
  double forward_share = 1.0 / 3;  ///< of the compute time; the rest is the backward's
  double update_s = 0;             ///< of all buckets together, beside the compute time
};

/// `elements` in nearly equal buckets.
std::vector<std::int64_t> even_buckets(std::int64_t elements, int buckets);

/// Throws std::invalid_argument for a workload that `workers` cannot have.
void check_workload(const SimWorkload& workload, int workers);

/// The compute times of one worker, step after step: the same for equal seeds, whatever the others
/// do.
class ComputeTimes {
 public:
  ComputeTimes(const SimWorkload& workload, int worker, std::uint64_t seed);
  SimTime next();

 private:
  const SimWorkload* workload_;
  std::size_t worker_;
  std::size_t step_ = 0;
  double mean_s_;
  double log_sigma_;
  Rng rng_;
};

/// The moments of a step, from its begin: the end of the forward, then of each bucket's backward,
/// which takes its elements' share of the backward.
struct ComputeMoments {
  SimTime forward{0};
  std::vector<SimTime> backward;
};
ComputeMoments moments_of(const SimWorkload& workload, SimTime compute);

/// A bucket's part of the update, by its elements.
SimTime update_time(const SimWorkload& workload, std::size_t bucket);

}  // namespace gossamer
