#include "gossamer/torch/modules/encoder_decoder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include "gossamer/torch/data/pair_batch.h"

namespace gossamer {
namespace {

const std::vector<PiecePair> kPairs{{{5, 6, 7}, {8, 9}}, {{10}, {11, 12, 13, 14}}, {{5}, {6}}};

Model tiny(double dropout = 0) {
  return make_encoder_decoder(
      {.vocabulary = 20, .context = 9, .width = 16, .heads = 2, .dropout = dropout}, 3);
}

TEST(EncoderDecoder, HasTheParametersOfItsFormula) {
  const std::int64_t pieces = 4000, d = 128, hidden = 256, layers = 2;
  const std::int64_t attention = 4 * (d * d + d);
  const std::int64_t feed = 2 * d * hidden + hidden + d;
  const std::int64_t norm = 2 * d;
  const std::int64_t encoder = attention + feed + 2 * norm;
  const std::int64_t decoder = 2 * attention + feed + 3 * norm;
  EXPECT_EQ(parameter_count(make_encoder_decoder({}, 1)),
            pieces * d + layers * (encoder + decoder) + 2 * norm);
}

TEST(EncoderDecoder, WhatFillsSequencesUpDoesNotMatter) {
  const Model model = tiny();
  double alone = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    const Batch batch = pair_batch(kPairs, {i});
    alone += evaluate(model, batch).loss_sum;
  }
  const Evaluation together = evaluate(model, pair_batch(kPairs, {0, 1, 2}));
  EXPECT_EQ(together.count, 3 + 5 + 2);
  EXPECT_NEAR(together.loss_sum, alone, 1e-4);
}

TEST(EncoderDecoder, ALaterPieceDoesNotChangeEarlierLogitsButTheSourceDoes) {
  const Model model = tiny();
  Batch batch = pair_batch(kPairs, {1});
  const at::Tensor before = model.logits(batch);
  batch.inputs = batch.inputs.clone();
  batch.inputs[0][3] = 19;
  const at::Tensor after = model.logits(batch);
  EXPECT_TRUE(at::allclose(before.narrow(0, 0, 3), after.narrow(0, 0, 3), 1e-5, 1e-6));
  EXPECT_FALSE(at::allclose(before.narrow(0, 3, 2), after.narrow(0, 3, 2), 1e-3, 1e-3));
  batch.sources = batch.sources.clone();
  batch.sources[0][0] = 19;
  EXPECT_FALSE(at::allclose(after, model.logits(batch), 1e-3, 1e-3));
}

TEST(EncoderDecoder, NoiseFollowsFromTheBatchAndIsForTrainingOnly) {
  const Model model = tiny(0.3);
  Batch batch = pair_batch(kPairs, {0, 1, 2});
  batch.seed = 7;
  const at::Tensor once = model.logits(batch);
  EXPECT_TRUE(once.equal(model.logits(batch)));
  batch.seed = 8;
  EXPECT_FALSE(once.equal(model.logits(batch)));
  model.module->eval();
  const at::Tensor calm = model.logits(batch);
  batch.seed = 7;
  EXPECT_TRUE(calm.equal(model.logits(batch)));
  EXPECT_TRUE(calm.equal(tiny(0).logits(batch)));
}

TEST(EncoderDecoder, ReadsOutTheSameFromMemoryAsFromLogits) {
  const Model model = tiny();
  model.module->eval();
  const Batch batch = pair_batch(kPairs, {0, 1});
  const at::Tensor next = model.next(batch, model.encode(batch.sources));
  const at::Tensor last = model.logits(batch).view({2, 5, 20}).select(1, 4).log_softmax(1);
  EXPECT_TRUE(at::allclose(next, last, 1e-5, 1e-5));
}

TEST(EncoderDecoder, RefusesImpossibleSizesAndTooLongSequences) {
  EXPECT_THROW(make_encoder_decoder({.width = 30, .heads = 4}, 1), std::invalid_argument);
  EXPECT_THROW(make_encoder_decoder({.layers = 0}, 1), std::invalid_argument);
  const std::vector<PiecePair> endless{{std::vector<std::int64_t>(10, 5), {6}}};
  EXPECT_THROW(tiny().logits(pair_batch(endless, {0})), std::invalid_argument);
}

/// The smoothed loss by its definition: 1 − s of the target's and s of the mean over all classes.
TEST(Loss, SmoothsLabelsAndSkipsWhatDoesNotCount) {
  const Model model = tiny();
  const Batch batch = pair_batch(kPairs, {0, 1, 2});
  const at::Tensor log_p = model.logits(batch).log_softmax(1);
  const at::Tensor targets = batch.targets.view({-1});
  double sum = 0;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < targets.numel(); ++i) {
    const auto target = targets[i].item<std::int64_t>();
    if (target == kIgnoredTarget) continue;
    sum -= 0.9 * log_p[i][target].item<double>() + 0.1 * log_p[i].mean().item<double>();
    ++count;
  }
  EXPECT_NEAR(loss_of(model, batch, 0.1).item<double>(), sum / static_cast<double>(count), 1e-5);
}

}  // namespace
}  // namespace gossamer
