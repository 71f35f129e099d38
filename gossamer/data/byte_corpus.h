#pragma once
/// Text of any kind as bytes, and how it is split.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gossamer {

struct CorpusOptions {
  /// For folders: only files whose names end in one of these; empty takes all.
  std::vector<std::string> suffixes = {};
  /// Reading stops here.
  std::int64_t max_bytes = std::int64_t{64} << 20;
};

/// A file (plain or gzip), or the files of a folder and its subfolders in the order of their
/// paths, one after the other. Throws IoError that names the path when there is nothing to read.
std::vector<std::uint8_t> read_corpus(const std::filesystem::path& path,
                                      const CorpusOptions& options);

/// Positions [begin, end) of a corpus, in bytes or tokens.
struct CorpusSpan {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct CorpusSplit {
  std::vector<CorpusSpan> training;
  std::vector<CorpusSpan> validation;
};

struct CorpusSplitOptions {
  double validation_fraction = 0.1;
  /// The corpus is cut into blocks of this size (smaller ones if it has less than ten), of which
  /// every k-th is for validation, so that both sides see all of it.
  std::int64_t block_bytes = 1 << 16;
};

/// Neighbouring training blocks are merged; no byte is on both sides. Throws std::invalid_argument
/// unless 0 < fraction ≤ ½.
CorpusSplit split_corpus(std::int64_t corpus_bytes, const CorpusSplitOptions& options);

}  // namespace gossamer
