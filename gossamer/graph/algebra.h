#pragma once
/// Arithmetic with rounds, as sparse matrices.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "gossamer/graph/round.h"

namespace gossamer {

/// The non-zeros of W.
std::int64_t nonzeros(const Round& round);

/// later · earlier: both rounds one after the other. A partition wherever the product averages over
/// groups. Cost: Σ over entries of `later` of a row of `earlier`.
Round product(const Round& later, const Round& earlier);

/// The mean of round_number(0) … round_number(count − 1). At least one round.
Round mean_round(int count, const std::function<Round(int)>& round_number);

/// (I + W)/2.
Round half_lazy(const Round& round);

/// No weight below 0, and every row and column sums to 1 (to 1e-9).
bool is_doubly_stochastic(const Round& round);

/// Same weights in both directions, to 1e-15.
bool is_symmetric(const Round& round);

/// The first row if every row is the first one shifted (to 1e-15), with senders as offsets.
std::optional<std::vector<Entry>> circulant_row(const Round& round);

}  // namespace gossamer
