#include "gossamer/data/token_corpus.h"

#include <algorithm>
#include <string>

namespace gossamer {
namespace {

/// Calls visit(line, ends) for the lines of a span; the last may not end in it.
template <class Visit>
void each_line(const std::vector<std::uint8_t>& text, const CorpusSpan& span, const Visit& visit) {
  const auto stop = text.begin() + span.end;
  for (auto begin = text.begin() + span.begin; begin != stop;) {
    const auto end = std::find(begin, stop, '\n');
    visit(std::string(begin, end), end != stop);
    begin = end == stop ? end : end + 1;
  }
}

/// Appends a span of the text and says where it lies.
CorpusSpan append_pieces(const std::vector<std::uint8_t>& text, const CorpusSpan& span,
                         const Vocabulary& vocabulary, std::vector<std::int32_t>& tokens) {
  const auto begin = static_cast<std::int64_t>(tokens.size());
  each_line(text, span, [&](const std::string& line, bool ends) {
    for (const std::int64_t piece : vocabulary.encode(line)) {
      tokens.push_back(static_cast<std::int32_t>(piece));
    }
    if (ends) tokens.push_back(static_cast<std::int32_t>(Vocabulary::kEnd));
  });
  return {.begin = begin, .end = static_cast<std::int64_t>(tokens.size())};
}

}  // namespace

TokenCorpus byte_tokens(const std::vector<std::uint8_t>& text, const CorpusSplit& split) {
  return {.tokens = {text.begin(), text.end()}, .split = split};
}

TokenCorpus piece_tokens(const std::vector<std::uint8_t>& text, const CorpusSplit& split,
                         const Vocabulary& vocabulary) {
  TokenCorpus corpus{
      .tokens = {}, .split = {}, .vocabulary = vocabulary.pieces(), .pieces = vocabulary};
  for (const CorpusSpan& span : split.training) {
    corpus.split.training.push_back(append_pieces(text, span, vocabulary, corpus.tokens));
  }
  for (const CorpusSpan& span : split.validation) {
    corpus.split.validation.push_back(append_pieces(text, span, vocabulary, corpus.tokens));
  }
  return corpus;
}

Vocabulary learn_pieces(const std::vector<std::uint8_t>& text, std::span<const CorpusSpan> spans,
                        std::int64_t pieces) {
  std::vector<std::string> lines;
  for (const CorpusSpan& span : spans) {
    each_line(text, span, [&](std::string line, bool) { lines.push_back(std::move(line)); });
  }
  return Vocabulary::train(lines, pieces, Normalization::none);
}

}  // namespace gossamer
