#pragma once
/// Mix fused with an SGD step with heavy-ball or Nesterov momentum.

#include <span>

#include "gossamer/kernels/mix.h"

namespace gossamer {

class WorkerPool;

struct MomentumStep {
  double lr = 0;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first_step = false;  ///< buf is set to the gradient; what it held does not matter
  double grad_scale = 1;
};

/// x and g are read; the new x and buf are written.
template <class T>
struct MomentumBuffers {
  std::span<T> x;
  std::span<T> out = {};  ///< where the new x goes; empty: over x
  std::span<const T> g;
  std::span<T> buf;
};

/// With g' = grad_scale·g + weight_decay·x, as torch.optim.SGD defines it:
///     buf ← momentum·buf + (1 − dampening)·g'    (first step: buf ← g')
///     x ← mixed − lr·buf                         (Nesterov: x ← mixed − lr·(g' + momentum·buf))
/// Note [Fused passes] in mix_only.h; the bits of torch under the conditions of mix_sgd.
template <class T>
double mix_momentum(const MomentumBuffers<T>& buffers, const Mix<T>& mix, const MomentumStep& step,
                    WorkerPool* pool = nullptr);

}  // namespace gossamer
