#include "gossamer/torch/modules/efficientnet_b0.h"

#include <ATen/ATen.h>

namespace gossamer {
namespace {

constexpr MobileStage kEfficientNetB0[] = {
    {.expansion = 1, .outputs = 16, .blocks = 1, .stride = 1, .kernel = 3},
    {.expansion = 6, .outputs = 24, .blocks = 2, .stride = 2, .kernel = 3},
    {.expansion = 6, .outputs = 40, .blocks = 2, .stride = 2, .kernel = 5},
    {.expansion = 6, .outputs = 80, .blocks = 3, .stride = 2, .kernel = 3},
    {.expansion = 6, .outputs = 112, .blocks = 3, .stride = 1, .kernel = 5},
    {.expansion = 6, .outputs = 192, .blocks = 4, .stride = 2, .kernel = 5},
    {.expansion = 6, .outputs = 320, .blocks = 1, .stride = 1, .kernel = 3},
};

}  // namespace

Model make_efficientnet_b0(const MobileNetOptions& options, std::uint64_t seed) {
  const MobileNetDesign design{
      .stem = 32, .stages = kEfficientNetB0, .last = 1280, .activation = at::silu, .squeeze = 4};
  return make_mobile_net(design, options, seed);
}

}  // namespace gossamer
