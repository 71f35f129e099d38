#pragma once
/// Masked language modelling: which tokens of a sequence are asked for, and what stands there.

#include <cstdint>

#include "gossamer/torch/modules/model.h"

namespace gossamer {

struct Masking {
  /// Of a sequence's tokens: how many are asked for, rounded, but at least one.
  double share = 0.15;
  /// The text has the tokens 0 … vocabulary − 1; the next number is the mask's.
  std::int64_t vocabulary = 256;
};

/// Throws std::invalid_argument unless 0 < share < 1.
void check_masking(const Masking& masking);

/// Devlin et al. 2018: of the inputs that are asked for 80 % become the mask, 10 % a token drawn
/// uniformly from the vocabulary, and 10 % stay. Their targets are what was there; all others
/// become kIgnoredTarget. What happens to row r follows from (key, first_row + r) alone.
void mask_tokens(Batch& batch, const Masking& masking, std::uint64_t key, std::int64_t first_row);

}  // namespace gossamer
