#include "gossamer/torch/modules/residual_cnn.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "gossamer/torch/modules/conv_norm.h"
#include "gossamer/torch/modules/initialise.h"
#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {
namespace {

struct Block : torch::nn::Module {
  Block(std::int64_t inputs, std::int64_t outputs, std::int64_t stride, const NormOptions& norm) {
    const auto add = [&](const std::string& name, const ConvShape& shape) {
      return register_module(name, std::make_shared<ConvNorm>(shape, norm));
    };
    first = add("first", {.inputs = inputs, .outputs = outputs, .stride = stride});
    second = add("second", {.inputs = outputs, .outputs = outputs});
    if (inputs != outputs || stride != 1) {
      shortcut =
          add("shortcut", {.inputs = inputs, .outputs = outputs, .kernel = 1, .stride = stride});
    }
  }

  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor straight = shortcut ? shortcut->forward(x) : x;
    return at::relu(second->forward(at::relu(first->forward(x))) + straight);
  }

  std::shared_ptr<ConvNorm> first, second, shortcut;
};

struct ResidualCnn : torch::nn::Module {
  explicit ResidualCnn(const ResidualCnnOptions& options) {
    const NormOptions norm{.momentum = options.norm_momentum, .dtype = options.dtype};
    stem = register_module(
        "stem", std::make_shared<ConvNorm>(
                    ConvShape{.inputs = options.channels, .outputs = options.width}, norm));
    std::int64_t channels = options.width;
    for (std::int64_t stage = 0; stage < options.stages; ++stage) {
      for (std::int64_t b = 0; b < options.blocks; ++b) {
        const bool halves = stage > 0 && b == 0;
        const std::int64_t outputs = halves ? 2 * channels : channels;
        blocks.push_back(
            register_module("stage" + std::to_string(stage) + "_block" + std::to_string(b),
                            std::make_shared<Block>(channels, outputs, halves ? 2 : 1, norm)));
        channels = outputs;
      }
    }
    const auto type = at::dtype(to_scalar_type(options.dtype));
    head_weight = register_parameter("head_weight", at::zeros({channels, options.classes}, type));
    head_bias = register_parameter("head_bias", at::zeros({options.classes}, type));
  }

  at::Tensor forward(const at::Tensor& images) const {
    at::Tensor x = at::relu(stem->forward(images.to(head_weight.scalar_type())));
    for (const auto& block : blocks) x = block->forward(x);
    return at::addmm(head_bias, x.mean({2, 3}), head_weight);
  }

  std::shared_ptr<ConvNorm> stem;
  std::vector<std::shared_ptr<Block>> blocks;
  at::Tensor head_weight, head_bias;
};

}  // namespace

Model make_residual_cnn(const ResidualCnnOptions& options, std::uint64_t seed) {
  auto module = std::make_shared<ResidualCnn>(options);
  initialise(*module, seed, he_spread);
  return {.module = module,
          .logits = [net = module.get()](const Batch& b) { return net->forward(b.inputs); }};
}

}  // namespace gossamer
