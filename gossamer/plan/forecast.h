#pragma once
/// forecast(): what a candidate does on a cluster, by simulation and by the model.

#include <cstdint>
#include <vector>

#include "gossamer/plan/candidate.h"
#include "gossamer/sim/simulate.h"

namespace gossamer {

struct ForecastOptions {
  std::int64_t steps = 100;   ///< that are measured
  std::int64_t warm_up = 20;  ///< steps before them
  std::vector<LinkChange> link_changes = {};
  std::vector<WorkerLoss> losses = {};
  bool record = false;  ///< fills `messages` and `timeline` of the result
};

struct Forecast {
  MethodSpec candidate;
  double step_s = 0;     ///< mean over workers and steps; NaN if no worker got through the warm-up
  double exposed_s = 0;  ///< the part in which workers wait for others
  double compute_s = 0;  ///< the rest: computing and updating
  double model_s = 0;    ///< step_s by the recursion; NaN for late = skip, changes and losses
  double link_busy = 0;  ///< share of the time in which the busiest direction of a link is full;
                         ///< NaN where workers wait for ever
  std::vector<double> bytes_per_host;  ///< sent to other hosts per step, without frames
  SimResult result;
};

/// Throws std::invalid_argument for what does not fit together.
Forecast forecast(const ClusterSpec& cluster, const Workload& workload, const MethodSpec& candidate,
                  const ForecastOptions& options = {});

/// What PyTorch's all-reduce of so many fp32 elements takes where it is as fast as its bytes allow.
double ddp_allreduce_s(const ClusterSpec& cluster, std::int64_t elements);

/// The share of the links' rates that PyTorch's all-reduce of so many fp32 elements has made use
/// of, if it took so long; for Workload::ddp_link_share. 1 where it was as fast as its bytes allow.
double ddp_link_share(const ClusterSpec& cluster, std::int64_t elements, double seconds);

}  // namespace gossamer
