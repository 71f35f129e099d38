#pragma once
/// Weights for common kinds of graphs: doubly stochastic by construction.

#include <span>
#include <vector>

#include "gossamer/graph/round.h"

namespace gossamer {

/// Who is joined to whom: symmetric, without self, each neighbour once.
using Neighbours = std::vector<std::vector<int>>;

/// Whether there is a way from everybody to everybody.
bool is_connected(const Neighbours& neighbours);

/// Metropolis weights: W[i][j] = 1/(1 + max(degree_i, degree_j)), the rest stays with i. Symmetric.
Round metropolis_round(const Neighbours& neighbours);

/// The same row for everybody, relative to itself: W[i][(i + offset) mod n] += weight, where each
/// entry's `worker` is the offset. Doubly stochastic when the weights sum to 1.
Round circulant_round(int workers, std::span<const Entry> offsets);

/// n = rows · columns with rows ≤ columns as near to each other as n allows (1 · n for primes).
struct Sides {
  int rows = 1;
  int columns = 1;
};
Sides near_square(int workers);

/// The smallest τ with 2^τ ≥ n.
int ceil_log2(int n);

}  // namespace gossamer
