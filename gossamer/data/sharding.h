#pragma once
/// Which samples of which batch belong to which worker: pure functions without state.

#include <cstdint>

namespace gossamer {

/// One worker of several.
struct Shard {
  int worker = 0;
  int workers = 1;
};

/// Positions [begin, end) of a global batch.
struct SampleRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t count() const { return end - begin; }
};

/// Worker w of n takes [w·B/n, (w+1)·B/n) of a global batch of B, so that the union over the
/// workers is the same batch for every n. Throws std::invalid_argument when the shard is not one
/// of its workers or the batch is smaller than the number of workers.
SampleRange local_range(std::int64_t global_batch, Shard shard);

/// The seed of the model's noise (dropout) in the worker's part of global batch `step`.
std::uint64_t noise_seed(std::uint64_t seed, std::int64_t step, Shard shard);

/// Where `index` goes in a permutation of [0, count) chosen by `key`: a Feistel network over the
/// next power of four with cycle walking, so it needs no table and costs O(1).
std::uint64_t permuted(std::uint64_t index, std::uint64_t count, std::uint64_t key);

}  // namespace gossamer
