#pragma once
/// ConsensusAverage: the mean of all workers' parameters, for a look at it between two steps.

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "gossamer/engine/bucket_state.h"
#include "gossamer/engine/collectives.h"

namespace gossamer {

/// A bucket, and this worker's weight in the mean of its parameters.
struct WeightedBucket {
  const Bucket* bucket = nullptr;
  double weight = 1;
};

class ConsensusAverage {
 public:
  /// Replaces the parameters, which must not travel meanwhile, by their weighted mean over all
  /// workers; keeps the local ones. Returns √(mean_i ‖x_i − x̄‖²) / ‖x̄‖. Collective.
  double load(std::span<const WeightedBucket> buckets, Collectives& collectives);
  bool is_loaded() const { return !local_.empty(); }
  /// Brings the local parameters back.
  void restore();

 private:
  struct Local {
    const Bucket* bucket = nullptr;
    std::vector<std::byte> values;
  };
  std::vector<Local> local_;
};

}  // namespace gossamer
