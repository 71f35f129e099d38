#pragma once
/// workload.toml: what a step computes and exchanges, and how many steps a run has.

#include <cstdint>
#include <string>
#include <string_view>

#include "gossamer/base/cluster_file.h"
#include "gossamer/model/workload.h"

namespace gossamer {

/// What a run is for: how many steps all-reduce needs, and with which gradients.
struct Target {
  std::int64_t steps = 10'000;  ///< until all-reduce has reached the loss that is wanted
  double global_batch = 0;      ///< samples per step; 0: not told
  double noise_scale = 0;       ///< samples from which on larger batches stop helping; 0: not told
  std::string optimizer = "adamw";  ///< by its name in `gossamer train`
  double steps_ratio = 0;           ///< steps of gossip over those of all-reduce, measured; 0: not
};

///     parameters = 25_600_000
///     dtype = "f32"            # of parameters and gradients; also f64
///     buckets = 8              # of equal size; or bucket_sizes = [...], in parameters
///     compute = "250ms"        # of forward and backward, mean over steps and workers
///     deviation = "20ms"       # standard deviation of the compute time
///     jitter = "normal"        # or lognormal; where there is a deviation
///     forward_share = 0.33     # of the compute time
///     update = "10ms"          # of all parameters
///     ddp_link_share = 0.85    # of the links' rates, what DDP's all-reduce gets, where measured
///     [target]
///     steps = 10_000           # that all-reduce needs
///     global_batch = 1024      # samples
///     noise_scale = 20_000     # samples
///     optimizer = "adamw"
///     steps_ratio = 1.1        # where it has been measured
struct WorkloadFile {
  Workload workload;
  Target target;
};

/// Reads the file. `parameters` or `bucket_sizes`, and `compute`, must be there. Throws IoError
/// where it cannot be read, and std::invalid_argument that names line and column.
WorkloadFile load_workload(const std::string& path);
/// The same of a text; `name` stands for the file in messages.
WorkloadFile parse_workload(std::string_view text, std::string_view name);

/// The workload with the speeds of the cluster's workers in its compute times.
Workload workload_on(const WorkloadFile& file, const ClusterFile& cluster);

/// As text that parse_workload() takes; `seed`, `factors` and `trace` of the compute times are not
/// part of the file.
std::string to_toml(const WorkloadFile& file);

}  // namespace gossamer
