#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "gossamer/torch/data/augment.h"
#include "gossamer/torch/data/data_fixture.h"
#include "gossamer/torch/data/idx_images.h"
#include "gossamer/torch/data/image_batches.h"
#include "gossamer/torch/data/image_set.h"
#include "gossamer/torch/data/task.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

TEST_F(DataFiles, ImagesNeedOneLabelEach) {
  const fs::path images = write("images", idx_bytes({4, 2, 2}, 16));
  EXPECT_EQ(read_idx_images(images, write("labels", idx_bytes({4}, 4))).classes, 4);
  const fs::path five = write("five", idx_bytes({5}, 5));
  expect_names(io_error([&] { read_idx_images(images, five); }), "five", "4 images");
  expect_names(io_error([&] { read_idx_images(five, five); }), "five", "3 or 4 dimensions");
  const ImageSet colour = read_idx_images(write("rgb", idx_bytes({4, 3, 2, 1}, 24)),
                                          write("labels", idx_bytes({4}, 4)));
  EXPECT_EQ(colour.channels, 3);
  EXPECT_EQ(colour.pixels_per_image(), 6);
}

TEST_F(DataFiles, EmptyImagesOrLabelsAreRefused) {
  const fs::path none = write("none", idx_bytes({0, 2, 2}, 0));
  const fs::path images = write("images", idx_bytes({4, 2, 2}, 16));
  const fs::path labels = write("labels", idx_bytes({0}, 0));
  expect_names(io_error([&] { read_idx_images(none, labels); }), "none", "is empty");
  expect_names(io_error([&] { read_idx_images(images, labels); }), "labels", "is empty");
}

std::string first_name(const ImageFiles& files) { return files.paths.at(0).filename().string(); }

TEST_F(DataFiles, TheFilesOfASetAreFoundByTheirNames) {
  expect_names(io_error([&] { find_images(folder_); }), folder_.filename().string(), "none");
  expect_names(io_error([&] { find_images(folder_ / "absent"); }), "absent", "not a folder");
  write("t10k-images-idx3-ubyte.gz", {});
  write("t10k-labels-idx1-ubyte", {});
  EXPECT_EQ(first_name(find_images(folder_)), "t10k-images-idx3-ubyte.gz");
  write("t10k-images-idx3-ubyte", {});
  EXPECT_EQ(first_name(find_images(folder_)), "t10k-images-idx3-ubyte");
  write("train-images-idx3-ubyte", {});
  expect_names(io_error([&] { find_images(folder_); }), "'train'", "is not complete");
  write("train-labels-idx1-ubyte", {});
  EXPECT_EQ(find_images(folder_).paths.at(1).filename(), "train-labels-idx1-ubyte");
  EXPECT_EQ(find_images(folder_, "t10k").paths.at(1).filename(), "t10k-labels-idx1-ubyte");
  expect_names(io_error([&] { find_images(folder_, "test"); }), "'test'", "t10k, train");
}

/// Records of label bytes and 3072 pixels; the first pixel of image i is i.
Bytes cifar_bytes(const std::vector<Bytes>& labels) {
  Bytes bytes;
  for (std::size_t image = 0; image < labels.size(); ++image) {
    bytes.insert(bytes.end(), labels[image].begin(), labels[image].end());
    bytes.push_back(static_cast<std::uint8_t>(image));
    bytes.insert(bytes.end(), 3071, 100);
  }
  return bytes;
}

TEST_F(DataFiles, CifarIsReadPlainAndPackedInTheOrderOfItsBatches) {
  write_gz("data_batch_2.bin.gz", cifar_bytes({{3}}));
  write("data_batch_1.bin", cifar_bytes({{9}, {0}}));
  write("test_batch.bin", cifar_bytes({{5}}));
  write("batches.meta.txt", {'x'});
  const ImageSet set = read_images(find_images(folder_));
  EXPECT_EQ(set.labels, (Bytes{9, 0, 3}));
  EXPECT_EQ(set.count, 3);
  EXPECT_EQ(set.classes, 10);
  EXPECT_EQ(set.pixels_per_image(), 3 * 32 * 32);
  EXPECT_EQ(set.pixels.size(), 3u * 3072);
  EXPECT_EQ(set.pixels[3072], 1);
  EXPECT_EQ(read_images(find_images(folder_, "test")).labels, Bytes{5});
}

TEST_F(DataFiles, OfTheTwoLabelsOfAHundredClassesTheFineOneCounts) {
  write("train.bin", cifar_bytes({{19, 99}, {0, 7}}));
  const ImageSet set = read_images(find_images(folder_));
  EXPECT_EQ(set.labels, (Bytes{99, 7}));
  EXPECT_EQ(set.classes, 100);
  EXPECT_EQ(set.pixels[3072], 1);
}

TEST_F(DataFiles, BadCifarFilesAreNamedWithTheirFault) {
  const auto fault = [&] { return io_error([&] { read_images(find_images(folder_)); }); };
  write("data_batch_1.bin", cifar_bytes({{1, 2}}));  // as of a hundred classes
  expect_names(fault(), "data_batch_1.bin", "3073 bytes");
  write("data_batch_1.bin", {});
  expect_names(fault(), "data_batch_1.bin", "got 0");
  write("data_batch_1.bin", cifar_bytes({{1}, {10}}));
  expect_names(fault(), "data_batch_1.bin", "got 10 for image 1");
  write("data_batch_3.bin", cifar_bytes({{1}}));
  expect_names(fault(), "'train'", "is not complete, got data_batch_1.bin, data_batch_3.bin");
}

TEST_F(DataFiles, AFolderWithTwoFormatsIsRefused) {
  write("train.bin", cifar_bytes({{0, 1}}));
  write("train-images-idx3-ubyte", idx_bytes({1, 2, 2}, 4));
  const std::string message = io_error([&] { find_images(folder_); });
  expect_names(message, folder_.filename().string(), "several: IDX, CIFAR-100");
}

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

TEST(Augment, MovesDependOnSeedStepAndSampleAlone) {
  const Augmentation augmentation{.shift = 3, .flip = true};
  std::vector<std::int64_t> samples(2000);
  std::iota(samples.begin(), samples.end(), 0);
  const auto code = [&](std::uint64_t seed, std::int64_t step,
                        const std::vector<std::int64_t>& of) {
    std::vector<std::int64_t> codes;
    for (const Move& m : moves_of(augmentation, seed, step, of)) {
      codes.push_back((m.down + 3) * 100 + (m.right + 3) * 10 + (m.mirrored ? 1 : 0));
    }
    return codes;
  };
  const auto all = code(1, 5, samples);
  EXPECT_EQ(code(1, 5, {7, 3}), (std::vector<std::int64_t>{all[7], all[3]}));
  EXPECT_NE(code(2, 5, samples), all);
  EXPECT_NE(code(1, 6, samples), all);
  // Each of the 7 · 7 · 2 moves comes about 20 times.
  std::map<std::int64_t, int> times;
  for (const std::int64_t one : all) ++times[one];
  EXPECT_EQ(times.size(), 98u);
  for (const auto& [move, count] : times) EXPECT_LT(count, 60) << move;
}

TEST(Augment, NothingIsDrawnWithoutNeedAndNonsenseIsRefused) {
  EXPECT_TRUE(moves_of({}, 1, 0, {1, 2}).empty());
  for (const Move& move : moves_of({.flip = true}, 1, 0, {1, 2, 3})) {
    EXPECT_EQ(move.down, 0);
    EXPECT_EQ(move.right, 0);
  }
  EXPECT_NO_THROW(check_augmentation({.shift = 27}, 28, 28));
  EXPECT_THROW(check_augmentation({.shift = 28}, 28, 30), std::invalid_argument);
  EXPECT_THROW(check_augmentation({.shift = -1}, 28, 28), std::invalid_argument);
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
  EXPECT_TRUE(at::equal(moved.validation.at(0).inputs, still.validation.at(0).inputs));
  const Batch part = moved.training_batch(0, {.worker = 1, .workers = 4});
  EXPECT_TRUE(at::equal(part.inputs, moved.training_batch(0, {}).inputs.narrow(0, 2, 2)));
  moving.augmentation.shift = 4;
  EXPECT_THROW(open_task(TaskKind::images, moving), std::invalid_argument);
}

TEST(RealData, HandwrittenDigitsHaveTheirPublishedSizes) {
  const fs::path folder = "../shared/data/mnist";
  if (!fs::exists(folder)) GTEST_SKIP() << "no folder " << folder;
  const ImageSet images = read_images(find_images(folder, "t10k"));
  EXPECT_EQ(images.count, 10000);
  EXPECT_EQ(images.height, 28);
  EXPECT_EQ(images.classes, 10);
  // The published counts of the test set: 980 zeros, 1135 ones.
  EXPECT_EQ(std::count(images.labels.begin(), images.labels.end(), 0), 980);
  EXPECT_EQ(std::count(images.labels.begin(), images.labels.end(), 1), 1135);
}

}  // namespace
}  // namespace gossamer
