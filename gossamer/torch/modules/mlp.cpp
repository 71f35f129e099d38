#include "gossamer/torch/modules/mlp.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "gossamer/torch/modules/initialise.h"
#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {
namespace {

struct Mlp : torch::nn::Module {
  explicit Mlp(const MlpOptions& options) {
    const auto type = at::dtype(to_scalar_type(options.dtype));
    std::int64_t inputs = options.inputs;
    for (std::int64_t layer = 0; layer <= options.layers; ++layer) {
      const std::int64_t outputs = layer == options.layers ? options.classes : options.hidden;
      const std::string number = std::to_string(layer);
      weights.push_back(
          register_parameter("layer" + number + "_weight", at::zeros({inputs, outputs}, type)));
      biases.push_back(register_parameter("layer" + number + "_bias", at::zeros({outputs}, type)));
      inputs = outputs;
    }
  }

  at::Tensor forward(const at::Tensor& images) const {
    at::Tensor x = images.flatten(1).to(weights.front().scalar_type());
    for (std::size_t layer = 0; layer < weights.size(); ++layer) {
      x = at::addmm(biases[layer], x, weights[layer]);
      if (layer + 1 < weights.size()) x = at::relu(x);
    }
    return x;
  }

  std::vector<at::Tensor> weights, biases;
};

}  // namespace

Model make_mlp(const MlpOptions& options, std::uint64_t seed) {
  auto module = std::make_shared<Mlp>(options);
  initialise(*module, seed, he_spread);
  return {.module = module,
          .logits = [net = module.get()](const Batch& b) { return net->forward(b.inputs); }};
}

}  // namespace gossamer
