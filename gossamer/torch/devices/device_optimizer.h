#pragma once
/// DeviceOptimizer: the optimizers of the table as torch's own operations, for parameters in the
/// memory of a device, where the fused passes of the kernels cannot go.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "gossamer/algo/optimizer.h"
#include "gossamer/torch/tensors/named_tensor.h"

namespace gossamer {

/// Steps parameters where they are, without a wait for the device. Mixes nothing: for an engine
/// with optimizer "none". Formulas as in kernels/mix_*.h, the numbers to rounding.
class DeviceOptimizer {
 public:
  /// State vectors are zeros beside the tensors. Throws std::invalid_argument for "none".
  DeviceOptimizer(const Optimizer& optimizer, std::vector<NamedTensor> tensors);

  /// Steps every tensor that has a gradient, with the numbers of its group; their t is ignored.
  /// Where `clip_norm` > 0 the gradients are first scaled down to that norm, in place. Returns the
  /// norms of the gradients before that, by tensor, on the device; 0 without a gradient.
  at::Tensor step(std::span<const Hyper> groups, double clip_norm);

  /// The optimizer's state vector `k` of a tensor.
  const at::Tensor& state(int tensor, int k) const;
  /// How often a tensor has been stepped.
  std::int64_t updates(int tensor) const;
  void set_updates(int tensor, std::int64_t updates);

 private:
  /// Tensors that step alike.
  struct Together {
    std::vector<at::Tensor> x, g;
    std::vector<std::vector<at::Tensor>> states;  ///< by state vector
  };
  using Step = void (DeviceOptimizer::*)(const Together&, const Hyper&, std::int64_t t) const;
  struct Row;

  void step_sgd(const Together& all, const Hyper& hyper, std::int64_t t) const;
  void step_adam(const Together& all, const Hyper& hyper, std::int64_t t) const;
  void step_accum_adam(const Together& all, const Hyper& hyper, std::int64_t t) const;

  const Optimizer& optimizer_;
  std::vector<NamedTensor> tensors_;
  std::vector<std::vector<at::Tensor>> states_;  ///< by tensor, then by state vector
  std::vector<std::int64_t> updates_;
  Step step_ = nullptr;
  bool decouples_ = false;  ///< AdamW, AccumAdamW
};

}  // namespace gossamer
