#pragma once
/// Sentence pairs as a batch of tensors.

#include <cstdint>
#include <vector>

#include "gossamer/data/parallel_text.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

/// The pairs as a batch: sources and targets with their ends, inputs with a beginning; short ones
/// are filled up with kPadding, short targets with kIgnoredTarget.
Batch pair_batch(const std::vector<PiecePair>& pairs, const std::vector<std::int64_t>& chosen);

}  // namespace gossamer
