#include "gossamer/torch/modules/softmax_regression.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {
namespace {

struct SoftmaxRegression : torch::nn::Module {
  explicit SoftmaxRegression(const SoftmaxRegressionOptions& options) {
    const auto type = at::dtype(to_scalar_type(options.dtype));
    weight = register_parameter("weight", at::zeros({options.inputs, options.classes}, type));
    bias = register_parameter("bias", at::zeros({options.classes}, type));
  }

  at::Tensor forward(const at::Tensor& images) const {
    return at::addmm(bias, images.flatten(1).to(weight.scalar_type()), weight);
  }

  at::Tensor weight, bias;
};

}  // namespace

Model make_softmax_regression(const SoftmaxRegressionOptions& options) {
  auto module = std::make_shared<SoftmaxRegression>(options);
  return {.module = module,
          .logits = [net = module.get()](const Batch& b) { return net->forward(b.inputs); }};
}

}  // namespace gossamer
