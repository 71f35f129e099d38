#pragma once
/// What factorisations tell of the spectrum of W where iterations on W itself do not settle.

#include "gossamer/graph/round.h"

namespace gossamer {

/// Wᵀ.
Round transposed(const Round& round);

/// 1 − ‖W − J‖₂ for symmetric, doubly stochastic W in sparse rows, by shift-and-invert on I − W
/// (and on I + W where a negative eigenvalue could be the larger one). 0 if W leaves the workers in
/// several parts. Meant for graphs with small separators (rings, paths, grids): the cost is that of
/// a sparse factorisation.
double gap_of_symmetric(const Round& round);

/// Whether all eigenvalues of a symmetric W are above `bound`, to 1e-9. Cost: that of a sparse
/// factorisation, unless every worker keeps so much that it is plain.
bool eigenvalues_above(const Round& round, double bound);

}  // namespace gossamer
