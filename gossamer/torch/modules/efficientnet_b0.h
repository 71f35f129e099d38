#pragma once
/// EfficientNet-B0 of Tan and Le 2019 (Table 1).

#include "gossamer/torch/modules/mobile_net.h"

namespace gossamer {

/// SiLU, squeeze and excitation through a quarter of a block's inputs; no dropout, no stochastic
/// depth.
Model make_efficientnet_b0(const MobileNetOptions& options, std::uint64_t seed);

}  // namespace gossamer
