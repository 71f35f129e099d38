#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gossamer/data/augment.h"
#include "gossamer/data/data_fixture.h"
#include "gossamer/torch/data/image_batches.h"
#include "gossamer/torch/data/task.h"

namespace gossamer {
namespace {

TEST(ImageBatches, PixelsAreScaledToMeanZeroAndDeviationOne) {
  const ImageSet images{.count = 2,
                        .height = 1,
                        .width = 2,
                        .classes = 2,
                        .pixels = {0, 255, 255, 0},
                        .labels = {1, 0}};
  const auto scales = pixel_scales(images, {0, 1});
  ASSERT_EQ(scales.size(), 1u);
  EXPECT_DOUBLE_EQ(scales[0].mean, 0.5);
  EXPECT_DOUBLE_EQ(scales[0].deviation, 0.5);
  const Batch batch = image_batch(images, scales, {1, 0});
  EXPECT_TRUE(at::equal(batch.inputs.flatten(), at::tensor({1.f, -1.f, -1.f, 1.f})));
  EXPECT_TRUE(at::equal(batch.targets, at::tensor({0, 1}, at::kLong)));
}

TEST(ImageBatches, EveryChannelHasAScaleOfItsOwn) {
  const ImageSet images{.count = 2,
                        .channels = 2,
                        .height = 1,
                        .width = 1,
                        .classes = 1,
                        .pixels = {0, 51, 255, 51},
                        .labels = {0, 0}};
  const auto scales = pixel_scales(images, {0, 1});
  ASSERT_EQ(scales.size(), 2u);
  EXPECT_DOUBLE_EQ(scales[0].mean, 0.5);
  EXPECT_DOUBLE_EQ(scales[1].mean, 0.2);
  EXPECT_DOUBLE_EQ(scales[1].deviation, 1);
  const Batch batch = image_batch(images, scales, {0, 1});
  EXPECT_TRUE(at::equal(batch.inputs.flatten(), at::tensor({-1.f, 0.f, 1.f, 0.f})));
}

/// Two channels of 2 × 3 pixels; the second has 10 more.
ImageSet numbered() {
  return {.count = 1,
          .channels = 2,
          .height = 2,
          .width = 3,
          .classes = 1,
          .pixels = {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16},
          .labels = {0}};
}

void expect_moved(const Move& move, const std::vector<float>& expected) {
  const std::vector<PixelScale> as_they_are(2, {.mean = 0, .deviation = 1. / 255});
  const Batch batch = image_batch(numbered(), as_they_are, {0}, {move});
  EXPECT_TRUE(at::allclose(batch.inputs.flatten(), at::tensor(expected))) << batch.inputs;
}

TEST(Augment, ImagesAreMirroredThenMovedAndBlackComesIn) {
  expect_moved({}, {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16});
  expect_moved({.down = 1}, {0, 0, 0, 1, 2, 3, 0, 0, 0, 11, 12, 13});
  expect_moved({.down = -1}, {4, 5, 6, 0, 0, 0, 14, 15, 16, 0, 0, 0});
  expect_moved({.right = 1}, {0, 1, 2, 0, 4, 5, 0, 11, 12, 0, 14, 15});
  expect_moved({.right = -2}, {3, 0, 0, 6, 0, 0, 13, 0, 0, 16, 0, 0});
  expect_moved({.mirrored = true}, {3, 2, 1, 6, 5, 4, 13, 12, 11, 16, 15, 14});
  expect_moved({.right = 1, .mirrored = true}, {0, 3, 2, 0, 6, 5, 0, 13, 12, 0, 16, 15});
}

TEST_F(DataFiles, TrainingImagesMoveAndThoseToValidateOnStay) {
  write("train-images-idx3-ubyte", idx_bytes({50, 4, 4}, 800));
  write("train-labels-idx1-ubyte", idx_bytes({50}, 50));
  const TaskArgs plain{.path = folder_, .global_batch = 8};
  TaskArgs moving = plain;
  moving.augmentation = {.shift = 1, .flip = true};
  const Task still = open_task(TaskKind::images, plain);
  const Task moved = open_task(TaskKind::images, moving);
  EXPECT_FALSE(at::equal(moved.training_batch(0, {}).inputs, still.training_batch(0, {}).inputs));
  EXPECT_TRUE(at::equal(moved.training_batch(0, {}).inputs, moved.training_batch(0, {}).inputs));
  EXPECT_TRUE(at::equal(moved.validation[0].inputs, still.validation[0].inputs));
  const Batch part = moved.training_batch(0, {.worker = 1, .workers = 4});
  EXPECT_TRUE(at::equal(part.inputs, moved.training_batch(0, {}).inputs.narrow(0, 2, 2)));
  moving.augmentation.shift = 4;
  EXPECT_THROW(open_task(TaskKind::images, moving), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
