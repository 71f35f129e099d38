#pragma once
/// Mix fused with an Adam or AdamW step: one pass of 32 bytes per float parameter with one source.

#include <cstdint>
#include <span>

#include "gossamer/kernels/mix.h"

namespace gossamer {

class WorkerPool;

struct AdamStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double noise_share = 1;  ///< see mix_adam
  double weight_decay = 0;
  bool decoupled = false;  ///< AdamW
  std::int64_t t = 1;      ///< the number of this step, from 1
  double grad_scale = 1;
};

/// x and g are read; the new x, m and v are written.
template <class T>
struct AdamBuffers {
  std::span<T> x;
  std::span<T> out = {};  ///< where the new x goes; empty: over x
  std::span<const T> g;
  std::span<T> m;
  std::span<T> v;
};

/// With g' = grad_scale·g, plus weight_decay·x unless decoupled (torch.optim.Adam, AdamW):
///     m ← β₁m + (1−β₁)g';  v ← β₂v + (1−β₂)g'²
///     x ← mixed − lr/(1−β₁ᵗ) · m/(√v/√(1−β₂ᵗ) + ε)    (decoupled: − lr·weight_decay·x as well)
/// With noise_share s, v takes up s·g'² + (1−s)·(m/(1−β₁ᵗ))² instead of g'²: about what the mean of
/// 1/s such gradients would bring, as m tells what they have in common.
/// Note [Fused passes] in mix_only.h. Agrees with torch to rounding, not to the bit: torch's own
/// paths differ among themselves, and its square root is not correctly rounded.
template <class T>
double mix_adam(const AdamBuffers<T>& buffers, const Mix<T>& mix, const AdamStep& step,
                WorkerPool* pool = nullptr);

}  // namespace gossamer
