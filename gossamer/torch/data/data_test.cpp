#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "gossamer/data/byte_corpus.h"
#include "gossamer/data/data_fixture.h"
#include "gossamer/data/sharding.h"
#include "gossamer/torch/data/image_batches.h"
#include "gossamer/torch/data/task.h"
#include "gossamer/torch/data/token_windows.h"

namespace gossamer {
namespace {

/// What the workers of each world size draw, worker after worker, must be the same list.
void expect_same_global_batch(
    const std::function<std::vector<std::int64_t>(std::int64_t, Shard)>& draw) {
  for (const std::int64_t step : {0, 1, 57}) {
    const std::vector<std::int64_t> whole = draw(step, {});
    for (const int workers : {2, 4, 5, 8}) {
      std::vector<std::int64_t> joined;
      for (int worker = 0; worker < workers; ++worker) {
        const auto part = draw(step, {.worker = worker, .workers = workers});
        joined.insert(joined.end(), part.begin(), part.end());
      }
      EXPECT_EQ(joined, whole) << workers << " workers, step " << step;
    }
  }
}

TEST(ImageBatches, TheGlobalBatchIsTheSameForEveryNumberOfWorkers) {
  const ImageBatchPlan plan{.global_batch = 16, .seed = 3};
  expect_same_global_batch(
      [&](std::int64_t step, Shard shard) { return image_indices(100, plan, step, shard); });
}

TEST(ImageBatches, AnEpochHasEverySampleOnceAndTheNextAnotherOrder) {
  const ImageBatchPlan plan{.global_batch = 10, .seed = 3};
  std::vector<std::int64_t> epochs[2];
  for (std::int64_t step = 0; step < 20; ++step) {
    for (const std::int64_t i : image_indices(100, plan, step, {})) {
      epochs[step / 10].push_back(i);
    }
  }
  for (const auto& epoch : epochs) {
    EXPECT_EQ(std::set<std::int64_t>(epoch.begin(), epoch.end()).size(), 100u);
  }
  EXPECT_NE(epochs[0], epochs[1]);
}

TEST(ImageBatches, UnequalWorkersShareNoSampleAndSeeFewClasses) {
  ImageSet images{.count = 400, .height = 1, .width = 1, .classes = 10};
  for (int i = 0; i < 400; ++i) images.labels.push_back(static_cast<std::uint8_t>(i % 10));
  std::vector<std::int64_t> samples(400);
  for (std::size_t i = 0; i < 400; ++i) samples[i] = static_cast<std::int64_t>(i);
  samples = sorted_by_class(images, samples);
  const ImageBatchPlan plan{.global_batch = 20, .seed = 3, .pieces_per_worker = 2};
  std::map<std::int64_t, int> owner;
  for (int worker = 0; worker < 5; ++worker) {
    std::set<int> classes;
    for (std::int64_t step = 0; step < 20; ++step) {  // one epoch of the worker's 80 samples
      for (const std::int64_t i : image_indices(400, plan, step, {worker, 5})) {
        EXPECT_TRUE(owner.emplace(i, worker).second);
        classes.insert(
            images.labels[static_cast<std::size_t>(samples[static_cast<std::size_t>(i)])]);
      }
    }
    EXPECT_EQ(classes.size(), 2u);
  }
  EXPECT_EQ(owner.size(), 400u);
  EXPECT_THROW(image_indices(9, plan, 0, {0, 5}), std::invalid_argument);
}

TEST(ImageBatches, TheSplitIsDisjointAndComplete) {
  const ImageSplit split = split_images({.count = 100}, 0.1);
  EXPECT_EQ(split.training.size(), 90u);
  EXPECT_EQ(split.validation.size(), 10u);
  EXPECT_EQ(split_images({.count = 2}, 0.01).training.size(), 1u);
  EXPECT_THROW(split_images({.count = 100}, 0), std::invalid_argument);
  EXPECT_THROW(split_images({.count = 1}, 0.5), std::invalid_argument);
}

TEST(TokenWindows, TheGlobalBatchIsTheSameForEveryNumberOfWorkers) {
  const WindowStarts starts({{0, 100}, {150, 400}}, 8);
  expect_same_global_batch(
      [&](std::int64_t step, Shard shard) { return window_offsets(starts, 16, 9, step, shard); });
  EXPECT_NE(window_offsets(starts, 16, 9, 0, {}), window_offsets(starts, 16, 10, 0, {}));
}

TEST(TokenWindows, NeverTouchTheOtherSide) {
  const std::int64_t context = 8;
  for (const std::int64_t size : {100, 1000, 12345}) {
    const CorpusSplit split = split_corpus(size, {.block_bytes = 64});
    std::vector<int> side(static_cast<std::size_t>(size), 0);
    for (const CorpusSpan& s : split.training) {
      std::fill(side.begin() + s.begin, side.begin() + s.end, 1);
    }
    for (const CorpusSpan& s : split.validation) {
      for (std::int64_t i = s.begin; i < s.end; ++i) {
        EXPECT_EQ(side[static_cast<std::size_t>(i)], 0);
        side[static_cast<std::size_t>(i)] = 2;
      }
    }
    EXPECT_EQ(std::count(side.begin(), side.end(), 0), 0);
    const WindowStarts starts(split.training, context);
    for (std::int64_t k = 0; k < starts.count(); ++k) {
      for (std::int64_t i = 0; i <= context; ++i) {
        ASSERT_EQ(side[static_cast<std::size_t>(starts.at(k) + i)], 1);
      }
    }
    for (const std::int64_t at : fixed_offsets(split.validation, context, 5)) {
      for (std::int64_t i = 0; i <= context; ++i) {
        ASSERT_EQ(side[static_cast<std::size_t>(at + i)], 2);
      }
    }
  }
  EXPECT_THROW(WindowStarts({{0, 8}}, 8), std::invalid_argument);
  EXPECT_EQ(WindowStarts({{0, 9}}, 8).count(), 1);
}

TEST(TokenWindows, TargetsAreTheTokensAfterTheInputs) {
  const std::vector<std::int32_t> text{10, 11, 12, 13, 14, 15};
  const std::vector<std::int64_t> offsets{2, 0};
  const Batch batch = token_batch(text, 3, offsets);
  EXPECT_TRUE(
      at::equal(batch.inputs, at::tensor({12, 13, 14, 10, 11, 12}, at::kLong).view({2, 3})));
  EXPECT_TRUE(
      at::equal(batch.targets, at::tensor({13, 14, 15, 11, 12, 13}, at::kLong).view({2, 3})));
}

TEST_F(DataFiles, TasksGiveWorkersTheirShareAndEveryoneTheSameValidation) {
  write("train-images-idx3-ubyte", idx_bytes({50, 4, 4}, 800));
  write("train-labels-idx1-ubyte", idx_bytes({50}, 50));
  write("text.txt", Bytes(5000, 'x'));
  for (const TaskKind kind : kAllTasks) {
    // The batches of translation are cut by tokens, see its own tests.
    if (kind == TaskKind::translation) continue;
    const bool text = kind == TaskKind::text;
    const Task task = open_task(kind, {.path = text ? folder_ / "text.txt" : folder_,
                                       .global_batch = 8,
                                       .validation_samples = 7,
                                       .validation_batch = 4,
                                       .context = 16});
    const Batch whole = task.training_batch(3, {});
    const Batch part = task.training_batch(3, {.worker = 1, .workers = 4});
    EXPECT_EQ(whole.inputs.size(0), 8);
    EXPECT_TRUE(at::equal(part.inputs, whole.inputs.narrow(0, 2, 2)));
    EXPECT_TRUE(at::equal(part.targets, whole.targets.narrow(0, 2, 2)));
    ASSERT_EQ(task.validation.size(), 2u);
    EXPECT_EQ(task.validation[0].inputs.size(0), 4);
    EXPECT_EQ(task.validation[1].inputs.size(0), text ? 3 : 1);
    EXPECT_EQ(task.steps_per_epoch, text ? 4500 / (8 * 16) : 45 / 8);
    EXPECT_THROW(open_task(kind, {.path = folder_, .global_batch = 0}), std::invalid_argument);
  }
}

}  // namespace
}  // namespace gossamer
