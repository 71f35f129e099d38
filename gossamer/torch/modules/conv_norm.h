#pragma once
/// What convolutional networks are made of: a convolution with its batch normalisation, and the
/// classifier behind the last one.

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>

#include "gossamer/base/dtype.h"

namespace gossamer {

struct ConvShape {
  std::int64_t inputs = 1;
  std::int64_t outputs = 1;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  /// As many as inputs: a depthwise convolution.
  std::int64_t groups = 1;
};

struct NormOptions {
  /// Share of the newest batch in the running statistics.
  double momentum = 0.1;
  DType dtype = DType::f32;
};

/// A convolution without bias, padded so that stride 1 keeps the size, and the batch normalisation
/// behind it (Ioffe and Szegedy 2015). The running statistics are buffers.
struct ConvNorm : torch::nn::Module {
  ConvNorm(const ConvShape& conv, const NormOptions& norm);

  at::Tensor forward(const at::Tensor& x) const;

  ConvShape shape;
  double momentum;
  at::Tensor kernel, norm_weight, norm_bias, running_mean, running_variance;
};

/// Scores from the mean over all places.
struct PooledClassifier : torch::nn::Module {
  PooledClassifier(std::int64_t channels, std::int64_t classes, DType dtype);

  at::Tensor forward(const at::Tensor& x) const;

  at::Tensor weight, bias;
};

/// Networks for photographs halve the resolution five times. Images of at most 64 pixels keep it in
/// the first places, as is usual for CIFAR, so that something is left for the last layers.
bool is_small_image(std::int64_t height, std::int64_t width);

}  // namespace gossamer
