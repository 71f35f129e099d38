#include "gossamer/torch/data/translation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "gossamer/base/index.h"
#include "gossamer/data/data_fixture.h"
#include "gossamer/torch/data/pair_batch.h"

namespace gossamer {
namespace {

TEST(PairBatch, ShiftsTargetsAndFillsUp) {
  const std::vector<PiecePair> pairs{{{11, 12}, {21, 22, 23}}, {{13}, {24}}};
  const Batch batch = pair_batch(pairs, {1, 0});
  const auto rows = [](const at::Tensor& tensor) {
    const auto* data = tensor.const_data_ptr<std::int64_t>();
    return std::vector<std::int64_t>(data, data + tensor.numel());
  };
  EXPECT_EQ(rows(batch.sources), (std::vector<std::int64_t>{13, 3, 0, 11, 12, 3}));
  EXPECT_EQ(rows(batch.inputs), (std::vector<std::int64_t>{2, 24, 0, 0, 2, 21, 22, 23}));
  EXPECT_EQ(rows(batch.targets), (std::vector<std::int64_t>{24, 3, -100, -100, 21, 22, 23, 3}));
}

class TranslationFiles : public DataFiles {
 protected:
  TaskArgs args(const ParallelText& text) const {
    return {.path = write_lines("source", text.sources),
            .global_batch = 256,
            .validation_fraction = 0.1,
            .context = 32,
            .target = write_lines("target", text.targets),
            .vocabulary = 60};
  }
};

TEST_F(TranslationFiles, TheTaskGivesEveryWorkerItsPartAndItsNoise) {
  const Task task = open_translation(args(spelled_backwards(200)));
  EXPECT_EQ(task.kind, InputKind::pairs);
  EXPECT_EQ(task.input.classes, 60);
  ASSERT_TRUE(task.vocabulary.has_value());
  std::set<std::uint64_t> seeds;
  for (std::int64_t step = 0; step < 3 * task.steps_per_epoch; ++step) {
    std::int64_t pairs = 0;
    for (int worker = 0; worker < 4; ++worker) {
      const Batch batch = task.training_batch(step, {worker, 4});
      EXPECT_TRUE(seeds.insert(batch.seed).second);
      pairs += batch.sources.size(0);
      EXPECT_TRUE(task.training_batch(step, {worker, 4}).inputs.equal(batch.inputs));
    }
    EXPECT_EQ(pairs, task.training_batch(step, {0, 1}).sources.size(0));
  }
  std::int64_t held_out = 0;
  for (std::size_t k = 0; k < task.validation.size(); ++k) {
    held_out += task.validation[k].sources.size(0);
  }
  EXPECT_EQ(held_out, 20);
}

TEST_F(TranslationFiles, BatchesAreTheSameInWhateverOrderTheyAreAskedFor) {
  const Task task = open_translation(args(spelled_backwards(200)));
  const Task other = open_translation(args(spelled_backwards(200)));
  const std::int64_t steps = 5 * task.steps_per_epoch;
  std::vector<torch::Tensor> forwards;
  for (std::int64_t step = 0; step < steps; ++step) {
    forwards.push_back(task.training_batch(step, {0, 1}).inputs);
  }
  EXPECT_FALSE(forwards.front().equal(forwards[at(task.steps_per_epoch)]));
  for (std::int64_t step = steps - 1; step >= 0; --step) {
    const Batch batch = other.training_batch(step, {0, 1});
    EXPECT_TRUE(batch.inputs.equal(forwards[at(step)])) << step;
  }
}

TEST_F(TranslationFiles, LongPairsAreLeftOutOfTrainingAndCutInValidation) {
  ParallelText text = spelled_backwards(50);
  std::string endless;
  for (int i = 0; i < 200; ++i) endless += "dog house ";
  text.sources[3] = endless;  // trained on
  text.sources[9] = endless;  // held out: every tenth
  const Task task = open_translation(args(text));
  EXPECT_NE(task.description.find("44 pairs to train on (1 longer"), std::string::npos)
      << task.description;
  for (std::size_t k = 0; k < task.validation.size(); ++k) {
    EXPECT_LE(task.validation[k].sources.size(1), 32);
  }
}

TEST_F(TranslationFiles, HalfAPairOfFilesIsRefused) {
  TaskArgs half = args(spelled_backwards(20));
  half.validation = half.path;
  EXPECT_THROW(open_translation(half), std::invalid_argument);
  half.validation.clear();
  half.target.clear();
  EXPECT_THROW(open_translation(half), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
