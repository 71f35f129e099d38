#pragma once
/// MobileNetV2 of Sandler et al. 2018 (Table 2).

#include "gossamer/torch/modules/mobile_net.h"

namespace gossamer {

/// ReLU6, no squeeze and excitation; no dropout.
Model make_mobilenet_v2(const MobileNetOptions& options, std::uint64_t seed);

}  // namespace gossamer
