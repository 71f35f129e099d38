#include "gossamer/torch/modules/decode.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/data/vocabulary.h"

namespace gossamer {
namespace {

using Pieces = std::vector<std::int64_t>;

/// A beginning of a translation: its pieces and the logarithm of its probability.
struct Hypothesis {
  Pieces pieces;
  double log_p = 0;
};

/// The search for one sentence. `live` hypotheses grow; `ended` ones wait for a better one.
struct Search {
  std::int64_t sentence = 0;
  std::vector<Hypothesis> live{{}};
  std::vector<Hypothesis> ended;
};

double score(const Hypothesis& hypothesis, double length_power) {
  const auto pieces = static_cast<double>(hypothesis.pieces.size()) + 1;  // with its end
  return hypothesis.log_p / std::pow(pieces, length_power);
}

/// A hypothesis and a piece behind it.
struct Candidate {
  double log_p = 0;
  std::size_t from = 0;
  std::int64_t piece = 0;
};

/// The next hypotheses of a search: row r of `log_p` belongs to hypothesis r.
void grow(Search& search, const at::Tensor& log_p, std::int64_t beam) {
  // Each hypothesis can end once, so that twice the beam leaves enough that go on.
  const auto most = std::min(2 * beam, log_p.size(1));
  const auto [values, pieces] = log_p.to(at::kDouble).topk(most, 1);
  std::vector<Candidate> candidates;
  for (std::size_t from = 0; from < search.live.size(); ++from) {
    for (std::int64_t k = 0; k < most; ++k) {
      const auto row = static_cast<std::int64_t>(from);
      candidates.push_back({search.live[from].log_p + values[row][k].item<double>(), from,
                            pieces[row][k].item<std::int64_t>()});
    }
  }
  std::ranges::stable_sort(candidates, std::greater{}, &Candidate::log_p);
  std::vector<Hypothesis> live;
  for (std::size_t rank = 0; rank < candidates.size(); ++rank) {
    const auto& [total, from, piece] = candidates[rank];
    Hypothesis next{search.live[from].pieces, total};
    if (piece == Vocabulary::kEnd) {
      if (rank < static_cast<std::size_t>(beam)) search.ended.push_back(std::move(next));
      continue;
    }
    next.pieces.push_back(piece);
    live.push_back(std::move(next));
    if (static_cast<std::int64_t>(live.size()) == beam) break;
  }
  search.live = std::move(live);
}

/// Row by row: whose prefix, and of which sentence.
struct LivePrefixes {
  at::Tensor prefixes;   // i64 [rows, length]
  at::Tensor sentences;  // i64 [rows]
};

LivePrefixes rows_of(const std::vector<Search>& searches) {
  std::vector<std::int64_t> flat;
  std::vector<std::int64_t> sentences;
  for (const Search& search : searches) {
    for (const Hypothesis& hypothesis : search.live) {
      flat.push_back(Vocabulary::kBegin);
      flat.insert(flat.end(), hypothesis.pieces.begin(), hypothesis.pieces.end());
      sentences.push_back(search.sentence);
    }
  }
  const auto rows = static_cast<std::int64_t>(sentences.size());
  return {at::tensor(flat, at::kLong).view({rows, -1}), at::tensor(sentences, at::kLong)};
}

Pieces best(const Search& search, double length_power) {
  const auto& among = search.ended.empty() ? search.live : search.ended;
  return std::ranges::max(
             among, {},
             [&](const Hypothesis& hypothesis) { return score(hypothesis, length_power); })
      .pieces;
}

void check(const Model& model, const DecodeOptions& options) {
  if (!model.encode || !model.next) {
    fail_argument({.place = "decode", .what = "this model does not translate"});
  }
  if (options.beam >= 1 && options.longest >= 1) return;
  fail_argument({.place = "decode",
                 .what = "beam and longest must be at least 1",
                 .got = std::to_string(options.beam) + " and " + std::to_string(options.longest)});
}

}  // namespace

std::vector<Pieces> decode(const Model& model, const at::Tensor& sources,
                           const DecodeOptions& options) {
  check(model, options);
  const at::NoGradGuard no_grad;
  const std::int64_t count = sources.size(0);
  const at::Tensor memory = model.encode(sources).view({count, sources.size(1), -1});
  std::vector<Search> searches(at(count));
  for (std::int64_t i = 0; i < count; ++i) searches[at(i)].sentence = i;
  std::vector<Pieces> translations(searches.size());
  for (std::int64_t length = 1; !searches.empty(); ++length) {
    const LivePrefixes rows = rows_of(searches);
    const Batch prefixes{.inputs = rows.prefixes,
                         .sources = sources.index_select(0, rows.sentences)};
    const at::Tensor seen = memory.index_select(0, rows.sentences);
    const at::Tensor log_p = model.next(prefixes, seen.view({-1, seen.size(2)}));
    std::int64_t row = 0;
    for (Search& search : searches) {
      const auto hypotheses = static_cast<std::int64_t>(search.live.size());
      grow(search, log_p.narrow(0, row, hypotheses), options.beam);
      row += hypotheses;
    }
    std::erase_if(searches, [&](const Search& search) {
      const bool done = static_cast<std::int64_t>(search.ended.size()) >= options.beam ||
                        length >= options.longest;
      if (done) {
        translations[at(search.sentence)] = best(search, options.length_power);
      }
      return done;
    });
  }
  return translations;
}

}  // namespace gossamer
