#pragma once
/// The mix without an optimizer step: x ← w_self·x + Σ_k w_k·src_k.

#include <span>

#include "gossamer/kernels/mix.h"

namespace gossamer {

class WorkerPool;

/// Note [Fused passes]: every pass mix_*() computes, element by element in the precision of T with
/// fused multiply-adds,
///     mixed = self_weight·x, then mixed = fma(w_k, src_k, mixed) for k = 0, 1, …
///     new x = mixed + d(g·grad_scale, state, x before the pass)
/// and returns Σ (x − mixed)², x before the pass, if mix.measure_distance is set, else 0. The sum
/// is in double in a fixed order (Note [Lanes] in norm.h). Neither threads nor the instruction set
/// change a bit of any result. Sources may overlap one another and g, never what is written; the
/// spans that are written are distinct; all have the length of x, else std::invalid_argument. No
/// alignment is asked for. Nothing is allocated without a pool. T is float or double. `pool` may be
/// null: then the calling thread does it all.
///
/// The new x goes over x, or, where the buffers have an `out`, there: then x is only read, so that
/// others may read it meanwhile. `out` must not overlap x, else std::invalid_argument. The bits are
/// the same. The fast kernels write it past the caches: of `out` nothing is read, and a pass moves
/// as many bytes as in place.

/// x is read; the new x is written.
template <class T>
struct MixBuffers {
  std::span<T> x;
  std::span<T> out = {};  ///< where the new x goes; empty: over x
};

/// new x = mixed. Reads x and the sources.
template <class T>
double mix_only(const MixBuffers<T>& buffers, const Mix<T>& mix, WorkerPool* pool = nullptr);

}  // namespace gossamer
