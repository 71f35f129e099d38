#include "gossamer/torch/modules/mobilenet_v2.h"

#include <ATen/ATen.h>

namespace gossamer {
namespace {

constexpr MobileStage kMobileNetV2[] = {
    {.expansion = 1, .outputs = 16, .blocks = 1, .stride = 1},
    {.expansion = 6, .outputs = 24, .blocks = 2, .stride = 2},
    {.expansion = 6, .outputs = 32, .blocks = 3, .stride = 2},
    {.expansion = 6, .outputs = 64, .blocks = 4, .stride = 2},
    {.expansion = 6, .outputs = 96, .blocks = 3, .stride = 1},
    {.expansion = 6, .outputs = 160, .blocks = 3, .stride = 2},
    {.expansion = 6, .outputs = 320, .blocks = 1, .stride = 1},
};

}  // namespace

Model make_mobilenet_v2(const MobileNetOptions& options, std::uint64_t seed) {
  const MobileNetDesign design{
      .stem = 32, .stages = kMobileNetV2, .last = 1280, .activation = at::relu6};
  return make_mobile_net(design, options, seed);
}

}  // namespace gossamer
