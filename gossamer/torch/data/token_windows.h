#pragma once
/// Training windows drawn from a corpus of tokens by pure functions.

#include <cstdint>
#include <span>
#include <vector>

#include "gossamer/data/byte_corpus.h"
#include "gossamer/data/sharding.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

/// The places where a window of `context` inputs and the token after them can start.
class WindowStarts {
 public:
  /// Throws std::invalid_argument when no span is long enough.
  WindowStarts(const std::vector<CorpusSpan>& spans, std::int64_t context);

  std::int64_t count() const { return count_; }
  /// The k-th place, as an offset into the corpus.
  std::int64_t at(std::int64_t k) const;

 private:
  std::vector<CorpusSpan> starts_;    // of each span: its possible starts
  std::vector<std::int64_t> before_;  // possible starts in the spans before
  std::int64_t count_ = 0;
};

/// Offsets of the worker's part of global batch `step`: sample i of the batch is a pure function
/// of (seed, step, i), uniform over the places, and the same for every number of workers.
std::vector<std::int64_t> window_offsets(const WindowStarts& starts, std::int64_t global_batch,
                                         std::uint64_t seed, std::int64_t step, Shard shard);

/// Up to `most` windows that do not overlap, spread evenly over the spans: for validation.
std::vector<std::int64_t> fixed_offsets(const std::vector<CorpusSpan>& spans, std::int64_t context,
                                        std::int64_t most);

/// The windows at `offsets` as a batch: each target is the token after its input.
Batch token_batch(std::span<const std::int32_t> corpus, std::int64_t context,
                  std::span<const std::int64_t> offsets);

}  // namespace gossamer
