#include "gossamer/torch/modules/mobile_net.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gossamer/torch/modules/conv_norm.h"
#include "gossamer/torch/modules/initialise.h"
#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {
namespace {

using Activation = at::Tensor (*)(const at::Tensor&);

/// x·numerator/denominator, rounded to a multiple of 8 that is not below nine tenths of it (Sandler
/// et al. 2018, in their code).
std::int64_t scaled_channels(std::int64_t x, std::int64_t numerator, std::int64_t denominator) {
  const std::int64_t product = x * numerator;
  const std::int64_t rounded = (product + 4 * denominator) / (8 * denominator) * 8;
  const std::int64_t channels = std::max<std::int64_t>(8, rounded);
  return 10 * channels * denominator < 9 * product ? channels + 8 : channels;
}

/// Scales every channel by a number from 0 to 1 that depends on the means of all.
struct SqueezeExcitation : torch::nn::Module {
  SqueezeExcitation(std::int64_t channels, std::int64_t inner, Activation function, DType dtype)
      : activation(function) {
    const auto type = at::dtype(to_scalar_type(dtype));
    squeeze_weight = register_parameter("squeeze_weight", at::zeros({channels, inner}, type));
    squeeze_bias = register_parameter("squeeze_bias", at::zeros({inner}, type));
    excite_weight = register_parameter("excite_weight", at::zeros({inner, channels}, type));
    excite_bias = register_parameter("excite_bias", at::zeros({channels}, type));
  }

  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor inner = activation(at::addmm(squeeze_bias, x.mean({2, 3}), squeeze_weight));
    const at::Tensor scale = at::sigmoid(at::addmm(excite_bias, inner, excite_weight));
    return x * scale.unsqueeze(2).unsqueeze(3);
  }

  Activation activation;
  at::Tensor squeeze_weight, squeeze_bias, excite_weight, excite_bias;
};

struct BlockShape {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t kernel = 3;
  std::int64_t stride = 1;
  std::int64_t expansion = 1;
};

struct InvertedResidual : torch::nn::Module {
  InvertedResidual(const BlockShape& shape, const MobileNetDesign& design, const NormOptions& norm)
      : activation(design.activation),
        has_shortcut(shape.stride == 1 && shape.inputs == shape.outputs) {
    const std::int64_t inner = shape.expansion * shape.inputs;
    const auto add = [&](const std::string& name, const ConvShape& conv) {
      return register_module(name, std::make_shared<ConvNorm>(conv, norm));
    };
    if (shape.expansion != 1) {
      expand = add("expand", {.inputs = shape.inputs, .outputs = inner, .kernel = 1});
    }
    filter = add("filter", {.inputs = inner,
                            .outputs = inner,
                            .kernel = shape.kernel,
                            .stride = shape.stride,
                            .groups = inner});
    if (design.squeeze > 0) {
      const std::int64_t squeezed = std::max<std::int64_t>(1, shape.inputs / design.squeeze);
      excitation = register_module("excitation", std::make_shared<SqueezeExcitation>(
                                                     inner, squeezed, activation, norm.dtype));
    }
    project = add("project", {.inputs = inner, .outputs = shape.outputs, .kernel = 1});
  }

  at::Tensor forward(const at::Tensor& x) const {
    at::Tensor y = expand ? activation(expand->forward(x)) : x;
    y = activation(filter->forward(y));
    if (excitation) y = excitation->forward(y);
    y = project->forward(y);
    return has_shortcut ? x + y : y;
  }

  Activation activation;
  bool has_shortcut;
  std::shared_ptr<ConvNorm> expand, filter, project;
  std::shared_ptr<SqueezeExcitation> excitation;
};

struct MobileNet : torch::nn::Module {
  MobileNet(const MobileNetDesign& design, const MobileNetOptions& options)
      : activation(design.activation) {
    const NormOptions norm{.dtype = options.dtype};
    const auto scaled = [&](std::int64_t x) {
      return scaled_channels(x, options.stem, design.stem);
    };
    const bool is_small = is_small_image(options.height, options.width);
    std::int64_t channels = scaled(design.stem);
    const ConvShape stem_shape{
        .inputs = options.channels, .outputs = channels, .stride = is_small ? 1 : 2};
    stem = register_module("stem", std::make_shared<ConvNorm>(stem_shape, norm));
    bool may_halve = !is_small;
    int number = 0;
    for (const MobileStage& stage : design.stages) {
      BlockShape shape{.kernel = stage.kernel, .expansion = stage.expansion};
      for (std::int64_t b = 0; b < stage.blocks; ++b) {
        shape.inputs = channels;
        shape.outputs = scaled(stage.outputs);
        shape.stride = b == 0 && may_halve ? stage.stride : 1;
        blocks.push_back(
            register_module("stage" + std::to_string(number) + "_block" + std::to_string(b),
                            std::make_shared<InvertedResidual>(shape, design, norm)));
        channels = shape.outputs;
      }
      may_halve = may_halve || stage.stride > 1;
      ++number;
    }
    const std::int64_t outputs = std::max(design.last, scaled(design.last));
    const ConvShape last_shape{.inputs = channels, .outputs = outputs, .kernel = 1};
    last = register_module("last", std::make_shared<ConvNorm>(last_shape, norm));
    head = register_module(
        "head", std::make_shared<PooledClassifier>(outputs, options.classes, options.dtype));
  }

  at::Tensor forward(const at::Tensor& images) const {
    at::Tensor x = activation(stem->forward(images.to(head->weight.scalar_type())));
    for (const auto& block : blocks) x = block->forward(x);
    return head->forward(activation(last->forward(x)));
  }

  Activation activation;
  std::shared_ptr<ConvNorm> stem, last;
  std::vector<std::shared_ptr<InvertedResidual>> blocks;
  std::shared_ptr<PooledClassifier> head;
};

}  // namespace

Model make_mobile_net(const MobileNetDesign& design, const MobileNetOptions& options,
                      std::uint64_t seed) {
  auto module = std::make_shared<MobileNet>(design, options);
  initialise(*module, seed, he_spread);
  return {.module = module,
          .logits = [net = module.get()](const Batch& b) { return net->forward(b.inputs); }};
}

}  // namespace gossamer
