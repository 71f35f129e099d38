#pragma once
/// Sentence pairs as pieces, and batches of them cut by tokens.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "gossamer/data/sharding.h"
#include "gossamer/data/vocabulary.h"

namespace gossamer {

/// The lines of a text file, plain or gzip, without their ends. Throws IoError.
std::vector<std::string> read_lines(const std::filesystem::path& path);

/// Line i of one file is the translation of line i of the other.
struct ParallelText {
  std::vector<std::string> sources;
  std::vector<std::string> targets;
};

/// Throws std::invalid_argument where the files have no lines or not equally many.
ParallelText read_parallel(const std::filesystem::path& sources,
                           const std::filesystem::path& targets);

/// Both sides without beginning and end.
struct PiecePair {
  std::vector<std::int64_t> source;
  std::vector<std::int64_t> target;

  /// Positions that the pair takes in a batch: the longer side and its end.
  std::int64_t length() const;
};

std::vector<PiecePair> encode(const ParallelText& text, const Vocabulary& vocabulary);

/// Cuts the sides of pairs that are longer than `context`.
void cut_long(std::vector<PiecePair>& pairs, std::int64_t context);

struct TokenBatchPlan {
  /// Positions in a batch at most, padding included: its pairs times their longest.
  std::int64_t tokens = 4096;
  /// Pairs are sorted by length plus a uniform draw up to this, so that batches differ by epoch.
  double jitter = 2;
  std::uint64_t seed = 1;
};

/// The batches of an epoch, in their shuffled order, as indices of pairs, in each by length. A pure
/// function; every pair comes once. Throws std::invalid_argument where a pair is longer than a
/// batch.
std::vector<std::vector<std::int64_t>> token_batches(const std::vector<std::int64_t>& lengths,
                                                     const TokenBatchPlan& plan,
                                                     std::int64_t epoch);

/// The worker's part of a batch: every workers-th of its pairs. Throws std::invalid_argument where
/// there are fewer pairs than workers.
std::vector<std::int64_t> dealt(const std::vector<std::int64_t>& batch, Shard shard);

}  // namespace gossamer
