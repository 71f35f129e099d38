#pragma once
/// What every fused pass has in common: the mix of the own parameters with received buffers.

#include <cstddef>
#include <span>

#include "gossamer/kernels/digest.h"

namespace gossamer {

/// A received buffer of the same length as x, and its weight W[i][j].
template <class T>
struct Source {
  const T* data = nullptr;
  double weight = 0;
};

/// mixed = self_weight · x + Σ_k sources[k].weight · sources[k].data, summed in this order.
template <class T>
struct Mix {
  double self_weight = 1;
  std::span<const Source<T>> sources = {};
  bool measure_distance = false;  ///< let the pass return Σ (x − mixed)²
  /// Of sources[0], by tile; empty: none. Where x has the same, sources[0] is x and is not read.
  std::span<const Digest> digests = {};
};

}  // namespace gossamer
