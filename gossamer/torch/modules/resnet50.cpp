#include "gossamer/torch/modules/resnet50.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <iterator>
#include <string>
#include <vector>

#include "gossamer/torch/modules/conv_norm.h"
#include "gossamer/torch/modules/initialise.h"

namespace gossamer {
namespace {

constexpr std::int64_t kBlocks[] = {3, 4, 6, 3};
constexpr std::int64_t kExpansion = 4;

/// 1×1 to fewer channels, 3×3 there, 1×1 to `kExpansion` times as many.
struct Bottleneck : torch::nn::Module {
  Bottleneck(std::int64_t inputs, std::int64_t inner, std::int64_t stride,
             const NormOptions& norm) {
    const std::int64_t outputs = kExpansion * inner;
    const auto add = [&](const std::string& name, const ConvShape& shape) {
      return register_module(name, std::make_shared<ConvNorm>(shape, norm));
    };
    reduce = add("reduce", {.inputs = inputs, .outputs = inner, .kernel = 1});
    middle = add("middle", {.inputs = inner, .outputs = inner, .stride = stride});
    expand = add("expand", {.inputs = inner, .outputs = outputs, .kernel = 1});
    if (inputs != outputs || stride != 1) {
      shortcut =
          add("shortcut", {.inputs = inputs, .outputs = outputs, .kernel = 1, .stride = stride});
    }
  }

  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor inner = at::relu(middle->forward(at::relu(reduce->forward(x))));
    return at::relu(expand->forward(inner) + (shortcut ? shortcut->forward(x) : x));
  }

  std::shared_ptr<ConvNorm> reduce, middle, expand, shortcut;
};

struct Resnet50 : torch::nn::Module {
  explicit Resnet50(const Resnet50Options& options)
      : is_small(is_small_image(options.height, options.width)) {
    const NormOptions norm{.dtype = options.dtype};
    const ConvShape stem_shape{.inputs = options.channels,
                               .outputs = options.stem,
                               .kernel = is_small ? 3 : 7,
                               .stride = is_small ? 1 : 2};
    stem = register_module("stem", std::make_shared<ConvNorm>(stem_shape, norm));
    std::int64_t channels = options.stem;
    std::int64_t inner = options.stem;
    for (std::size_t stage = 0; stage < std::size(kBlocks); ++stage, inner *= 2) {
      for (std::int64_t b = 0; b < kBlocks[stage]; ++b) {
        const std::int64_t stride = stage > 0 && b == 0 ? 2 : 1;
        blocks.push_back(
            register_module("stage" + std::to_string(stage) + "_block" + std::to_string(b),
                            std::make_shared<Bottleneck>(channels, inner, stride, norm)));
        channels = kExpansion * inner;
      }
    }
    head = register_module(
        "head", std::make_shared<PooledClassifier>(channels, options.classes, options.dtype));
  }

  at::Tensor forward(const at::Tensor& images) const {
    at::Tensor x = at::relu(stem->forward(images.to(head->weight.scalar_type())));
    if (!is_small) x = at::max_pool2d(x, /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
    for (const auto& block : blocks) x = block->forward(x);
    return head->forward(x);
  }

  bool is_small;
  std::shared_ptr<ConvNorm> stem;
  std::vector<std::shared_ptr<Bottleneck>> blocks;
  std::shared_ptr<PooledClassifier> head;
};

}  // namespace

Model make_resnet50(const Resnet50Options& options, std::uint64_t seed) {
  auto module = std::make_shared<Resnet50>(options);
  initialise(*module, seed, he_spread);
  return {.module = module,
          .logits = [net = module.get()](const Batch& b) { return net->forward(b.inputs); }};
}

}  // namespace gossamer
