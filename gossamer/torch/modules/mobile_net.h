#pragma once
/// Networks of inverted residual blocks: what MobileNetV2 and EfficientNet are, given their stages.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "gossamer/base/dtype.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

/// Blocks of one kind. A block expands its channels by a 1×1 convolution (but for expansion 1),
/// filters each by itself, and projects to its outputs; a shortcut leads around it where the shape
/// stays. The first of a stage has the stride and changes the number of channels.
struct MobileStage {
  std::int64_t expansion = 6;
  std::int64_t outputs = 16;
  std::int64_t blocks = 1;
  std::int64_t stride = 1;
  std::int64_t kernel = 3;
};

struct MobileNetDesign {
  std::int64_t stem = 32;  ///< channels of the first convolution, 3×3 with stride 2
  std::span<const MobileStage> stages;
  std::int64_t last = 1280;  ///< channels of the last convolution, 1×1
  at::Tensor (*activation)(const at::Tensor&) = nullptr;
  /// Channels are weighted by what is seen of all of them (squeeze and excitation, Hu et al. 2018),
  /// through 1/squeeze as many as a block has inputs; 0: they are not.
  std::int64_t squeeze = 0;
};

struct MobileNetOptions {
  std::int64_t channels = 3;
  std::int64_t height = 224;
  std::int64_t width = 224;
  std::int64_t classes = 1000;
  /// Channels of the stem; the others follow in proportion, as multiples of 8. The last convolution
  /// does not get fewer than in the design.
  std::int64_t stem = 32;
  DType dtype = DType::f32;
};

/// Small images keep their resolution in the stem and in the first stage that would halve it. Equal
/// seeds give equal bits on every worker.
Model make_mobile_net(const MobileNetDesign& design, const MobileNetOptions& options,
                      std::uint64_t seed);

}  // namespace gossamer
