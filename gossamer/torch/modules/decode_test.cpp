#include "gossamer/torch/modules/decode.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cmath>
#include <map>

#include "gossamer/base/index.h"
#include "gossamer/torch/modules/encoder_decoder.h"

namespace gossamer {
namespace {

using Pieces = std::vector<std::int64_t>;

constexpr std::int64_t kEnd = 3;
constexpr std::int64_t kClasses = 8;

/// A model that looks the next piece's probabilities up by what it has said so far.
Model table_model(std::map<Pieces, std::map<std::int64_t, double>> table) {
  const auto next = [table](const Batch& prefixes, const at::Tensor&) {
    const std::int64_t rows = prefixes.inputs.size(0);
    const std::int64_t length = prefixes.inputs.size(1);
    at::Tensor p = at::full({rows, kClasses}, 1e-9);
    const auto* input = prefixes.inputs.const_data_ptr<std::int64_t>();
    for (std::int64_t row = 0; row < rows; ++row) {
      const Pieces said(input + row * length + 1, input + (row + 1) * length);
      const auto known = table.find(said);
      if (known == table.end()) {
        p[row][kEnd] = 1.0;
        continue;
      }
      for (const auto& [piece, probability] : known->second) p[row][piece] = probability;
    }
    return p.log();
  };
  return {.module = std::make_shared<torch::nn::Module>(),
          .encode = [](const at::Tensor& sources) { return at::zeros({sources.numel(), 1}); },
          .next = next};
}

/// Greedy takes 4, whose best end has p = .6 × .4; the best translation is 5 with .4 × .9.
Model garden_path() {
  return table_model({{{}, {{4, 0.6}, {5, 0.4}}},
                      {{4}, {{6, 0.4}, {7, 0.35}, {kEnd, 0.25}}},
                      {{5}, {{6, 0.9}, {kEnd, 0.1}}}});
}

at::Tensor some_sources(std::int64_t count) {
  return at::full({count, 2}, 5, at::dtype(at::kLong));
}

TEST(Decode, GreedyTakesTheMostProbablePieceEachTime) {
  const auto found = decode(garden_path(), some_sources(2), {.beam = 1});
  EXPECT_EQ(found, (std::vector<Pieces>{{4, 6}, {4, 6}}));
}

TEST(Decode, ABeamFindsWhatGreedyMisses) {
  const auto found = decode(garden_path(), some_sources(3), {.beam = 2});
  EXPECT_EQ(found, (std::vector<Pieces>{{5, 6}, {5, 6}, {5, 6}}));
}

TEST(Decode, TheLengthPowerWeighsShortAgainstLong) {
  // "4" has log p = log .5; "5 6" has log .45, which is more per piece.
  const Model model = table_model({{{}, {{4, 0.5}, {5, 0.45}}}, {{5}, {{6, 1.0}}}});
  const at::Tensor source = some_sources(1);
  EXPECT_EQ(decode(model, source, {.beam = 3, .length_power = 0})[0], (Pieces{4}));
  EXPECT_EQ(decode(model, source, {.beam = 3, .length_power = 1})[0], (Pieces{5, 6}));
}

TEST(Decode, StopsWhereNothingEnds) {
  std::map<Pieces, std::map<std::int64_t, double>> endless;
  Pieces said;
  for (int k = 0; k < 20; ++k, said.push_back(4)) endless[said] = {{4, 1.0}};
  const auto found = decode(table_model(endless), some_sources(1), {.longest = 7});
  EXPECT_EQ(found[0], Pieces(7, 4));
}

TEST(Decode, RefusesWhatCannotTranslate) {
  EXPECT_THROW(decode({}, some_sources(1), {}), std::invalid_argument);
  EXPECT_THROW(decode(garden_path(), some_sources(1), {.beam = 0}), std::invalid_argument);
}

/// Σ log p of the translation and its end, by the model's own logits.
double log_p_of(const Model& model, const at::Tensor& source, const Pieces& translation) {
  Pieces input{2};
  input.insert(input.end(), translation.begin(), translation.end());
  Pieces target = translation;
  target.push_back(kEnd);
  const auto row = [](const Pieces& pieces) { return at::tensor(pieces, at::kLong).view({1, -1}); };
  const Batch batch{.inputs = row(input), .targets = row(target), .sources = source};
  return -evaluate(model, batch).loss_sum;
}

TEST(Decode, GreedyOfATransformerIsTheArgmaxOfItsLogits) {
  const Model model =
      make_encoder_decoder({.vocabulary = 20, .context = 12, .width = 16, .heads = 2}, 4);
  model.module->eval();
  // The last sentence is shorter: what fills it up must not matter.
  const at::Tensor sources =
      at::tensor({5, 6, 7, 3, 9, 9, 9, 3, 8, 3, 0, 0}, at::kLong).view({3, 4});
  const auto together = decode(model, sources, {.longest = 6});
  for (std::int64_t i = 0; i < 3; ++i) {
    const at::Tensor own = sources.narrow(0, i, 1).narrow(1, 0, i == 2 ? 2 : 4);
    Pieces said;
    while (said.size() < 6) {
      Pieces input{2};
      input.insert(input.end(), said.begin(), said.end());
      const Batch batch{.inputs = at::tensor(input, at::kLong).view({1, -1}), .sources = own};
      const auto piece = model.logits(batch).select(0, -1).argmax().item<std::int64_t>();
      if (piece == kEnd) break;
      said.push_back(piece);
    }
    EXPECT_EQ(together[at(i)], said) << i;
  }
}

TEST(Decode, AWideBeamIsNoWorseThanGreedy) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Model model =
        make_encoder_decoder({.vocabulary = 12, .context = 12, .width = 16, .heads = 2}, seed);
    model.module->eval();
    const at::Tensor source = at::tensor({5, 6, 7, 3}, at::kLong).view({1, 4});
    const auto score = [&](std::int64_t beam) {
      const Pieces best = decode(model, source, {.beam = beam, .length_power = 0, .longest = 4})[0];
      return log_p_of(model, source, best);
    };
    // All 12³ beginnings fit, so that it is an exhaustive search.
    EXPECT_GE(score(2000), score(1) - 1e-6) << seed;
  }
}

}  // namespace
}  // namespace gossamer
