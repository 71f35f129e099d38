#pragma once
/// GradientBuckets: which gradients travel together in a pass.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gossamer/torch/devices/device_stage.h"
#include "gossamer/torch/devices/gradient_stage.h"
#include "gossamer/torch/tensors/flat_average.h"

namespace gossamer {

/// Tensors that travel together, their elements one after the other.
struct GradientBucket {
  FlatAverage average;
  std::vector<std::size_t> tensors;
  std::vector<at::Tensor> views;         ///< of the average's flat array, by tensor
  std::size_t missing = 0;               ///< gradients of this pass that are still to come
  std::shared_ptr<PinnedRange> pinned;   ///< what all averages share, where a device writes there
  std::unique_ptr<GradientStage> stage;  ///< null: gradients are in CPU memory
};

/// Of one set of tensors. Peers may read what they hold: copies are not allowed.
struct GradientBuckets {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  std::vector<char> chosen;  ///< by tensor: lies in a bucket
  std::vector<GradientBucket> buckets;
  std::vector<std::size_t> bucket_of;  ///< by tensor; kNone for those that are in none
};

/// The chosen tensors in reverse order; a bucket has one element type and at most `bucket_bytes`,
/// unless one tensor is larger. `out`: the stream in which gradients on a device leave it.
GradientBuckets make_buckets(std::span<const at::Tensor> tensors, std::vector<char> chosen,
                             std::int64_t bucket_bytes, const Averagers& all, Codec codec,
                             const std::optional<c10::Stream>& out = std::nullopt);

}  // namespace gossamer
