#pragma once
/// ResNet-50, the residual network with bottlenecks of He et al. 2016 (Table 1).

#include <cstdint>

#include "gossamer/base/dtype.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

struct Resnet50Options {
  std::int64_t channels = 3;
  std::int64_t height = 224;
  std::int64_t width = 224;
  std::int64_t classes = 1000;
  /// Channels of the stem; all others are multiples of it.
  std::int64_t stem = 64;
  DType dtype = DType::f32;
};

/// Stages of 3, 4, 6 and 3 blocks behind a 7×7 stem with max pooling; small images get a 3×3 stem
/// without stride and pooling. Blocks that halve the resolution do so in their 3×3 convolution, as
/// is usual since Goyal et al. 2017. Equal seeds give equal bits on every worker.
Model make_resnet50(const Resnet50Options& options, std::uint64_t seed);

}  // namespace gossamer
