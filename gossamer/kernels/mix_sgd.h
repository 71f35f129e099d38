#pragma once
/// Mix fused with a plain SGD step.

#include <span>

#include "gossamer/kernels/mix.h"

namespace gossamer {

class WorkerPool;

struct SgdStep {
  double lr = 0;
  double weight_decay = 0;
  double grad_scale = 1;
};

/// x and g are read; the new x is written.
template <class T>
struct SgdBuffers {
  std::span<T> x;
  std::span<T> out = {};  ///< where the new x goes; empty: over x
  std::span<const T> g;
};

/// x ← mixed − lr·(grad_scale·g + weight_decay·x); Note [Fused passes] in mix_only.h. Without
/// sources, with self_weight = grad_scale = 1, exactly the bits of torch.optim.SGD on a CPU with
/// AVX2 or AVX-512: fma(−lr, fma(wd, x, g), x).
template <class T>
double mix_sgd(const SgdBuffers<T>& buffers, const Mix<T>& mix, const SgdStep& step,
               WorkerPool* pool = nullptr);

}  // namespace gossamer
