#pragma once
/// What every worker does in a step: how long it computes, and the buckets it exchanges.

#include <cstdint>
#include <vector>

#include "gossamer/base/dtype.h"
#include "gossamer/model/compute_times.h"

namespace gossamer {

struct Workload {
  /// Elements of each bucket, in the order in which the backward completes their gradients.
  std::vector<std::int64_t> buckets;
  DType dtype = DType::f32;
  ComputeTimes compute;            ///< of forward and backward together
  double forward_share = 1.0 / 3;  ///< φ: the part of the compute time before the first gradient
  double update_s = 0;             ///< of all buckets together, beside the compute time
  double ddp_link_share = 1;       ///< of the links' rates, what PyTorch's all-reduce makes use of
};

/// Throws std::invalid_argument for a workload that `workers` cannot have: no bucket, a negative
/// one, times that are not between 0 and 1e6 s, a deviation of more than ten times the mean.
void check_workload(const Workload& workload, int workers);

std::int64_t elements_of(const Workload& workload);

/// Bucket b's part of all elements; even parts where there are none.
double share_of(const Workload& workload, std::size_t bucket);

}  // namespace gossamer
