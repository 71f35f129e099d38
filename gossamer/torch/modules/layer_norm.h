#pragma once
/// Layer normalisation over the last dimension, with scale and shift. Internal to the models.

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <vector>

namespace gossamer {

struct LayerNorm : torch::nn::Module {
  LayerNorm(std::int64_t width, const at::TensorOptions& type) : sizes{width} {
    weight = register_parameter("weight", at::ones({width}, type));
    bias = register_parameter("bias", at::zeros({width}, type));
  }

  at::Tensor forward(const at::Tensor& x) const {
    constexpr double kEpsilon = 1e-5;
    return std::get<0>(at::native_layer_norm(x, sizes, weight, bias, kEpsilon));
  }

  std::vector<std::int64_t> sizes;
  at::Tensor weight, bias;
};

}  // namespace gossamer
