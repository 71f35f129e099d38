#pragma once
/// Mix fused with an AccumAdam or AccumAdamW step, whose moments absorb `period` gradients at once.

#include <cstdint>
#include <span>

#include "gossamer/kernels/mix.h"

namespace gossamer {

class WorkerPool;

struct AccumAdamStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double noise_share = 1;  ///< see mix_adam
  double weight_decay = 0;
  bool decoupled = false;   ///< AccumAdamW
  std::int64_t t = 1;       ///< the number of this step, from 1
  std::int64_t period = 1;  ///< s; the same for all t
  double grad_scale = 1;
};

/// x and g are read; the new x is written; m, v and b as said at mix_accum_adam.
template <class T>
struct AccumAdamBuffers {
  std::span<T> x;
  std::span<T> out = {};  ///< where the new x goes; empty: over x
  std::span<const T> g;
  std::span<T> m;
  std::span<T> v;
  std::span<T> b;
};

/// With s = period, t̂ = ⌈t/s⌉ and g' = grad_scale·g, plus weight_decay·x unless decoupled:
///     m' = β₁m + (1−β₁)g';  v' = β₂v + (1−β₂)g'²;  b += g'/s
///     x ← mixed − lr/(1−β₁^t̂) · m'/(√v'/√(1−β₂^t̂) + ε)    (decoupled: − lr·weight_decay·x as well)
///     when s divides t: m ← β₁m + (1−β₁)b;  v ← β₂v + (1−β₂)b²;  b = 0
/// Source: the AccumAdam paper. Period 1 is Adam. Note [Fused passes] in mix_only.h.
///
/// Buffers touched, besides x (read, written), g and the sources (read); bytes per float parameter
/// with one source, a store counted once:
///     t mod s = 1     reads m v,   writes b          28    b is set, not read
///     in between      reads m v b, writes b          32
///     t mod s = 0     reads m v b, writes m v        36    b stays: dead until the next step
///     s = 1           reads m v,   writes m v        32    b is not touched and may be empty
/// So b needs no clearing, and its content has a meaning only while t mod s ≠ 0.
template <class T>
double mix_accum_adam(const AccumAdamBuffers<T>& buffers, const Mix<T>& mix,
                      const AccumAdamStep& step, WorkerPool* pool = nullptr);

}  // namespace gossamer
