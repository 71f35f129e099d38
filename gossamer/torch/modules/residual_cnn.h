#pragma once
/// A small residual network with batch normalisation for images of any size.

#include <cstdint>

#include "gossamer/base/dtype.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

struct ResidualCnnOptions {
  std::int64_t channels = 1;
  std::int64_t classes = 10;
  /// Channels of the first stage; each further stage has twice as many at half the resolution.
  std::int64_t width = 16;
  std::int64_t stages = 3;
  /// Residual blocks of two 3×3 convolutions per stage.
  std::int64_t blocks = 1;
  /// Share of the newest batch in the running statistics.
  double norm_momentum = 0.1;
  DType dtype = DType::f32;
};

/// He et al. 2016, with the second norm's scale of each block at 1 and a 1×1 convolution on the
/// shortcut where the shape changes. Equal seeds give equal bits on every worker.
Model make_residual_cnn(const ResidualCnnOptions& options, std::uint64_t seed);

}  // namespace gossamer
