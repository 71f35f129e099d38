#pragma once
/// Softmax regression: one linear map from pixels to classes; convex.

#include <cstdint>

#include "gossamer/base/dtype.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

struct SoftmaxRegressionOptions {
  std::int64_t inputs = 28 * 28;
  std::int64_t classes = 10;
  DType dtype = DType::f32;
};

/// Starts at zero (every class equally likely), so there is nothing to seed.
Model make_softmax_regression(const SoftmaxRegressionOptions& options);

}  // namespace gossamer
