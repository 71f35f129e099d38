#pragma once
/// A multilayer perceptron with ReLU between its layers.

#include <cstdint>

#include "gossamer/base/dtype.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

struct MlpOptions {
  std::int64_t inputs = 28 * 28;
  std::int64_t hidden = 256;
  /// Hidden layers.
  std::int64_t layers = 2;
  std::int64_t classes = 10;
  DType dtype = DType::f32;
};

/// Equal seeds give equal bits on every worker.
Model make_mlp(const MlpOptions& options, std::uint64_t seed);

}  // namespace gossamer
