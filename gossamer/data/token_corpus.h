#pragma once
/// A text as numbered tokens: its bytes, or the pieces of a vocabulary.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gossamer/data/byte_corpus.h"
#include "gossamer/data/vocabulary.h"

namespace gossamer {

struct TokenCorpus {
  std::vector<std::int32_t> tokens;
  /// Positions in `tokens`.
  CorpusSplit split;
  /// How many different tokens there can be.
  std::int64_t vocabulary = 256;
  /// What the tokens mean; none: bytes.
  std::optional<Vocabulary> pieces = {};
};

/// Every byte is a token.
TokenCorpus byte_tokens(const std::vector<std::uint8_t>& text, const CorpusSplit& split);

/// Of each span its lines as pieces, with Vocabulary::kEnd where a line ends.
TokenCorpus piece_tokens(const std::vector<std::uint8_t>& text, const CorpusSplit& split,
                         const Vocabulary& vocabulary);

/// Learns so many pieces from the lines of these spans, which keep every space that they have.
/// Throws std::invalid_argument where they have too little for so many.
Vocabulary learn_pieces(const std::vector<std::uint8_t>& text, std::span<const CorpusSpan> spans,
                        std::int64_t pieces);

}  // namespace gossamer
