#include "gossamer/torch/modules/models.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cmath>
#include <thread>

#include "gossamer/torch/modules/mlp.h"
#include "gossamer/torch/modules/residual_cnn.h"
#include "gossamer/torch/modules/transformer.h"
#include "gossamer/torch/process.h"
#include "gossamer/torch/tensors/arrivals.h"
#include "gossamer/torch/tensors/module_tensors.h"

namespace gossamer {
namespace {

constexpr InputShape kTinyInput{.height = 9, .width = 7, .classes = 3, .context = 12};

bool is_text(InputKind kind) {
  return kind == InputKind::tokens || kind == InputKind::masked_tokens;
}

ModelArgs tiny_args(const ModelKind& kind, std::uint64_t seed = 1) {
  const bool images = kind.input == InputKind::images;
  InputShape input = kTinyInput;
  if (kind.input == InputKind::pairs) input.classes = 17;
  if (is_text(kind.input)) input.classes = 256;
  return {.input = input,
          .size = {.width = images ? 8 : 32, .layers = 2, .heads = 4},
          .dropout = 0,
          .seed = seed};
}

/// Samples that any of the models can tell apart.
Batch tiny_batch(InputKind kind) {
  if (kind == InputKind::images) {
    const at::Tensor ramp = at::arange(6 * 63, at::kFloat).view({6, 1, 9, 7});
    return {.inputs = (ramp * 0.37f).sin(), .targets = at::arange(6, at::kLong).remainder(3)};
  }
  if (kind == InputKind::pairs) {
    const at::Tensor source = at::arange(4 * 7, at::kLong).square().remainder(13).add(4);
    return {.inputs = source.view({4, 7}).contiguous(),
            .targets = source.view({4, 7}).flip(1).contiguous(),
            .sources = source.view({4, 7})};
  }
  const at::Tensor text = (at::arange(4 * 13, at::kLong).square() % 251).view({4, 13});
  return {.inputs = text.narrow(1, 0, 12).contiguous(),
          .targets = text.narrow(1, 1, 12).contiguous()};
}

std::vector<float> all_values(const Model& model) {
  std::vector<float> values;
  for (const at::Tensor& parameter : model.module->parameters()) {
    const auto* data = parameter.const_data_ptr<float>();
    values.insert(values.end(), data, data + parameter.numel());
  }
  return values;
}

void descend(const Model& model, const Batch& batch, double rate) {
  model.module->zero_grad();
  loss_of(model, batch).backward();
  const at::NoGradGuard no_grad;
  for (const at::Tensor& parameter : model.module->parameters()) {
    if (parameter.grad().defined()) parameter.sub_(parameter.grad(), rate);
  }
}

TEST(Models, OverfitATinyBatchAndRepeatBitForBit) {
  use_one_torch_thread();
  for (const ModelKind& kind : model_kinds()) {
    const Batch batch = tiny_batch(kind.input);
    std::vector<std::vector<float>> ends;
    for (int run = 0; run < 2; ++run) {
      const Model model = kind.make(tiny_args(kind));
      const double before = evaluate(model, batch).mean_loss();
      const double first = loss_of(model, batch).item<double>();
      for (int step = 0; step < 60; ++step) descend(model, batch, 0.1);
      const double last = loss_of(model, batch).item<double>();
      EXPECT_LT(last, 0.7 * first) << kind.name;
      EXPECT_LT(evaluate(model, batch).mean_loss(), before) << kind.name;
      ends.push_back(all_values(model));
    }
    EXPECT_EQ(ends[0], ends[1]) << kind.name;
  }
}

TEST(Models, EqualSeedsGiveEqualBitsAndOthersDoNot) {
  for (const ModelKind& kind : model_kinds()) {
    const auto one = all_values(kind.make(tiny_args(kind, 1)));
    at::manual_seed(99);  // torch's generator must not matter
    EXPECT_EQ(one, all_values(kind.make(tiny_args(kind, 1)))) << kind.name;
    if (kind.name == "softmax_regression") continue;  // starts at zero
    EXPECT_NE(one, all_values(kind.make(tiny_args(kind, 2)))) << kind.name;
  }
}

TEST(Models, WorkInDoublePrecisionToo) {
  for (const ModelKind& kind : model_kinds()) {
    ModelArgs args = tiny_args(kind);
    const double single = loss_of(kind.make(args), tiny_batch(kind.input)).item<double>();
    args.dtype = DType::f64;
    const Model model = kind.make(args);
    const at::Tensor loss = loss_of(model, tiny_batch(kind.input));
    EXPECT_EQ(loss.scalar_type(), at::kDouble);
    EXPECT_NEAR(loss.item<double>(), single, 1e-4) << kind.name;
    loss.backward();
    double size = 0;
    for (const at::Tensor& parameter : model.module->parameters()) {
      size += parameter.grad().abs().sum().item<double>();
    }
    EXPECT_GT(size, 0) << kind.name;
  }
}

TEST(Models, LaidOutByCompletionEveryBucketIsCompleteBeforeTheNext) {
  for (const ModelKind& kind : model_kinds()) {
    const Batch batch = tiny_batch(kind.input);
    const auto completion = completion_order(kind.make(tiny_args(kind)), batch);
    const Model model = kind.make(tiny_args(kind));
    const ModuleTensors tensors = tensors_of(*model.module, {.completion = completion});
    EXPECT_EQ(completion.size(), tensors.trained.size()) << kind.name;
    std::vector<std::string> arrived;
    std::vector<at::Tensor> all;
    for (const NamedTensor& named : tensors.trained) all.push_back(named.tensor);
    const Arrivals arrivals(all,
                            [&](std::size_t i) { arrived.push_back(tensors.trained[i].name); });
    loss_of(model, batch).backward();
    std::vector<std::string> laid_out;
    for (const ParameterSlot& slot : layout_of(tensors.trained, {.min_buckets = 5}).slots) {
      laid_out.push_back(slot.info.name);
    }
    EXPECT_EQ(arrived, laid_out) << kind.name;
  }
}

TEST(Models, SoftmaxRegressionStartsAtTheEntropyOfItsClasses) {
  const ModelKind& kind = find_model("softmax_regression");
  const Model model = kind.make(tiny_args(kind));
  EXPECT_NEAR(loss_of(model, tiny_batch(kind.input)).item<double>(), std::log(3.0), 1e-6);
  EXPECT_EQ(parameter_count(model), 63 * 3 + 3);
}

TEST(Models, ResidualCnnTakesAnySizeAndChannels) {
  for (const std::int64_t side : {1, 5, 28, 33}) {
    const Model model = make_residual_cnn({.channels = 3, .classes = 4, .width = 4}, 1);
    const Batch batch{.inputs = at::ones({2, 3, side, side}), .targets = at::zeros({2}, at::kLong)};
    EXPECT_EQ(model.logits(batch).sizes(), (std::vector<std::int64_t>{2, 4}));
  }
}

TEST(Models, EvaluationSumsAddUpAndLeaveTheRunningStatisticsAlone) {
  const ModelKind& kind = find_model("residual_cnn");
  const Model model = kind.make(tiny_args(kind));
  const Batch batch = tiny_batch(kind.input);
  loss_of(model, batch).backward();
  std::vector<at::Tensor> statistics;
  for (const at::Tensor& buffer : model.module->buffers()) statistics.push_back(buffer.clone());
  const Evaluation whole = evaluate(model, batch);
  Evaluation parts;
  for (std::int64_t i = 0; i < 6; ++i) {
    parts += evaluate(
        model, {.inputs = batch.inputs.narrow(0, i, 1), .targets = batch.targets.narrow(0, i, 1)});
  }
  EXPECT_EQ(whole.count, 6);
  EXPECT_EQ(parts.count, 6);
  EXPECT_EQ(parts.correct, whole.correct);
  EXPECT_NEAR(parts.loss_sum, whole.loss_sum, 1e-4);
  const std::vector<at::Tensor> after = model.module->buffers();
  ASSERT_EQ(after.size(), statistics.size());
  for (std::size_t i = 0; i < after.size(); ++i) EXPECT_TRUE(at::equal(after[i], statistics[i]));
  EXPECT_TRUE(model.module->is_training());
}

TEST(Transformer, ALaterByteDoesNotChangeEarlierLogits) {
  for (const Positions positions : {Positions::learned, Positions::sinusoidal}) {
    for (const bool tied : {true, false}) {
      const Model model = make_transformer(
          {.context = 12, .width = 32, .layers = 2, .positions = positions, .tied_embedding = tied},
          3);
      Batch batch = tiny_batch(InputKind::tokens);
      const at::Tensor before = model.logits(batch).view({4, 12, 256});
      batch.inputs = batch.inputs.clone();
      batch.inputs.narrow(1, 7, 1).fill_(255);
      const at::Tensor after = model.logits(batch).view({4, 12, 256});
      EXPECT_TRUE(at::allclose(before.narrow(1, 0, 7), after.narrow(1, 0, 7), 1e-5, 1e-6));
      EXPECT_FALSE(at::allclose(before.narrow(1, 7, 5), after.narrow(1, 7, 5), 1e-3, 1e-3));
    }
  }
}

/// What the last of 12 tokens changes in the logits of each position, at most.
std::vector<float> influence_of_the_last_token(const ModelKind& kind) {
  const Model model = kind.make(tiny_args(kind));
  Batch batch = tiny_batch(kind.input);
  const at::Tensor before = model.logits(batch).view({4, 12, 256});
  batch.inputs = batch.inputs.clone();
  batch.inputs.select(1, 11).fill_(255);
  const at::Tensor change = (model.logits(batch).view({4, 12, 256}) - before).abs().amax({0, 2});
  const auto* data = change.const_data_ptr<float>();
  return {data, data + change.numel()};
}

TEST(Transformer, OnlyBertSeesLaterTokens) {
  const std::vector<float> causal = influence_of_the_last_token(find_model("transformer"));
  const std::vector<float> both_ways = influence_of_the_last_token(find_model("bert"));
  for (std::size_t position = 0; position < 11; ++position) {
    EXPECT_LT(causal[position], 1e-5f) << position;
    EXPECT_GT(both_ways[position], 1e-4f) << position;
  }
  EXPECT_GT(causal[11], 1e-2f);
}

TEST(Transformer, DropsUnitsInTrainingWhereItIsTold) {
  const Model model =
      make_transformer({.context = 12, .width = 32, .layers = 2, .dropout = 0.3}, 3);
  const Model plain = make_transformer({.context = 12, .width = 32, .layers = 2}, 3);
  Batch batch = tiny_batch(InputKind::tokens);
  batch.seed = 7;
  const at::Tensor once = model.logits(batch);
  EXPECT_TRUE(once.equal(model.logits(batch)));
  EXPECT_FALSE(once.equal(plain.logits(batch)));
  batch.seed = 8;
  EXPECT_FALSE(once.equal(model.logits(batch)));
  EXPECT_TRUE(plain.logits(batch).equal(plain.logits(tiny_batch(InputKind::tokens))));
  model.module->eval();
  EXPECT_TRUE(model.logits(batch).equal(plain.logits(batch)));
}

TEST(Models, DropoutIsTheUsualOneUnlessItIsGiven) {
  for (const auto& [name, usual] : {std::pair{"transformer", 0.0}, {"bert", 0.1}}) {
    const ModelKind& kind = find_model(name);
    const auto logits = [&](std::optional<double> dropout) {
      ModelArgs args = tiny_args(kind);
      args.dropout = dropout;
      return kind.make(args).logits(tiny_batch(kind.input));
    };
    EXPECT_TRUE(logits(std::nullopt).equal(logits(usual))) << name;
    EXPECT_FALSE(logits(std::nullopt).equal(logits(0.5))) << name;
  }
}

TEST(Transformer, HasTheParametersOfItsFormula) {
  const std::int64_t d = 32, layers = 3, context = 12;
  const auto count = [&](bool tied) {
    return parameter_count(make_transformer(
        {.context = context, .width = d, .layers = layers, .tied_embedding = tied}, 1));
  };
  const std::int64_t tied = (256 + context) * d + layers * (12 * d * d + 4 * d) + 2 * d;
  EXPECT_EQ(count(true), tied);
  EXPECT_EQ(count(false), tied + 256 * d);
}

TEST(Transformer, RefusesImpossibleSizesAndTooLongSequences) {
  EXPECT_THROW(make_transformer({.width = 30, .heads = 4}, 1), std::invalid_argument);
  EXPECT_THROW(make_transformer({.layers = 0}, 1), std::invalid_argument);
  const Model model = make_transformer({.context = 11, .width = 32, .layers = 1}, 1);
  EXPECT_THROW(model.logits(tiny_batch(InputKind::tokens)), std::invalid_argument);
}

TEST(Threads, NewThreadsAlsoRunOperationsAlone) {
  use_one_torch_thread();
  int inside = 0;
  std::jthread([&] { inside = at::get_num_threads(); }).join();
  EXPECT_EQ(inside, 1);
  EXPECT_EQ(at::get_num_threads(), 1);
}

}  // namespace
}  // namespace gossamer
