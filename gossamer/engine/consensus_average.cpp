#include "gossamer/engine/consensus_average.h"

#include <cmath>

#include "gossamer/base/errors.h"
#include "gossamer/engine/elements.h"

namespace gossamer {

double ConsensusAverage::load(std::span<const WeightedBucket> buckets, Collectives& collectives) {
  GOSSAMER_ASSERT(!is_loaded());
  double distance = 0;  // Σ ‖x_i − x̄‖²
  double norm = 0;      // Σ ‖x̄‖²
  for (const auto& [bucket, weight] : buckets) {
    const DType dtype = bucket->dtype;
    local_.push_back({bucket, std::vector<std::byte>(bytes_of(*bucket))});
    std::vector<std::byte>& local = local_.back().values;
    read_parameters(*bucket, local.data());
    std::vector<std::byte> mean = local;
    elements::scale(dtype, mean.data(), bucket->count, weight);
    collectives.mean(dtype, mean.data(), mean.data(), bucket->count);
    write_parameters(*bucket, mean.data());
    if (bucket->is_beside) continue;
    distance += elements::distance_squared(dtype, local.data(), mean.data(), bucket->count);
    norm += elements::norm_squared(dtype, mean.data(), bucket->count);
  }
  collectives.mean({&distance, 1});
  return norm > 0 ? std::sqrt(distance / norm) : 0;
}

void ConsensusAverage::restore() {
  GOSSAMER_ASSERT(is_loaded());
  for (const Local& local : local_) write_parameters(*local.bucket, local.values.data());
  local_.clear();
}

}  // namespace gossamer
