#include "gossamer/torch/modules/conv_norm.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {

ConvNorm::ConvNorm(const ConvShape& conv, const NormOptions& norm)
    : shape(conv), momentum(norm.momentum) {
  const auto type = at::dtype(to_scalar_type(norm.dtype));
  const std::int64_t n = conv.outputs;
  kernel = register_parameter(
      "kernel", at::zeros({n, conv.inputs / conv.groups, conv.kernel, conv.kernel}, type));
  norm_weight = register_parameter("norm_weight", at::ones({n}, type));
  norm_bias = register_parameter("norm_bias", at::zeros({n}, type));
  running_mean = register_buffer("running_mean", at::zeros({n}, type));
  running_variance = register_buffer("running_variance", at::ones({n}, type));
}

at::Tensor ConvNorm::forward(const at::Tensor& x) const {
  const at::Tensor y = at::conv2d(x, kernel, /*bias=*/{}, shape.stride,
                                  /*padding=*/shape.kernel / 2, /*dilation=*/1, shape.groups);
  return at::batch_norm(y, norm_weight, norm_bias, running_mean, running_variance, is_training(),
                        momentum, /*eps=*/1e-5, /*cudnn_enabled=*/false);
}

PooledClassifier::PooledClassifier(std::int64_t channels, std::int64_t classes, DType dtype) {
  const auto type = at::dtype(to_scalar_type(dtype));
  weight = register_parameter("weight", at::zeros({channels, classes}, type));
  bias = register_parameter("bias", at::zeros({classes}, type));
}

at::Tensor PooledClassifier::forward(const at::Tensor& x) const {
  return at::addmm(bias, x.mean({2, 3}), weight);
}

bool is_small_image(std::int64_t height, std::int64_t width) {
  constexpr std::int64_t kSmall = 64;
  return std::max(height, width) <= kSmall;
}

}  // namespace gossamer
