#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "gossamer/data/augment.h"
#include "gossamer/data/data_fixture.h"
#include "gossamer/data/decode_image.h"
#include "gossamer/data/fit_image.h"
#include "gossamer/data/image_fixture.h"
#include "gossamer/torch/data/image_batches.h"
#include "gossamer/torch/data/task.h"

namespace gossamer {
namespace {

constexpr std::size_t kArea = 6 * 6;

/// 60 images of 6 × 6 pixels in three classes, as an IDX file and as PNG files of the same order.
class Twins : public DataFiles {
 protected:
  void SetUp() override {
    Bytes labels = idx_bytes({60}, 0);
    for (int k = 0; k < 60; ++k) labels.push_back(static_cast<std::uint8_t>(k / 20));
    Bytes images = idx_bytes({60, 6, 6}, 0);
    Rng rng(3);
    for (int k = 0; k < 60; ++k) {
      Bytes pixels;
      for (std::size_t i = 0; i < kArea; ++i) {
        pixels.push_back(static_cast<std::uint8_t>(rng.below(256)));
      }
      images.insert(images.end(), pixels.begin(), pixels.end());
      const std::string name = std::to_string(k / 20) + '/' + std::to_string(100 + k) + ".png";
      write("files/" + name, png_bytes({6, 6}, pixels, {.kind = PngKind::grey}));
    }
    write("idx/train-images-idx3-ubyte", images);
    write("idx/train-labels-idx1-ubyte", labels);
  }
  TaskArgs args(const std::string& folder) const {
    return {.path = folder_ / folder, .global_batch = 8, .seed = 5, .validation_batch = 4};
  }
};

void expect_equal(const Batch& a, const Batch& b) {
  EXPECT_TRUE(at::equal(a.inputs, b.inputs));
  EXPECT_TRUE(at::equal(a.targets, b.targets));
}

void expect_twins(const Task& memory, const Task& files) {
  for (const std::int64_t step : {0, 1, 2, 9, 10, 3}) {
    for (int worker = 0; worker < 2; ++worker) {
      expect_equal(memory.training_batch(step, {worker, 2}),
                   files.training_batch(step, {worker, 2}));
    }
  }
  ASSERT_EQ(memory.validation.size(), files.validation.size());
  for (std::size_t k = 0; k < memory.validation.size(); ++k) {
    expect_equal(memory.validation[k], files.validation[k]);
  }
}

TEST_F(Twins, FilesGiveTheBatchesOfTheSameImagesInMemory) {
  for (const int steps : {0, 1, 3}) {
    for (const bool augments : {false, true}) {
      TaskArgs files = args("files");
      TaskArgs memory = args("idx");
      files.read_ahead = steps;
      files.image_size = memory.image_size = augments ? 5 : 0;
      if (augments) files.augmentation = memory.augmentation = {.shift = 1, .flip = true};
      expect_twins(open_task(TaskKind::images, memory), open_task(TaskKind::images, files));
    }
  }
}

TEST_F(Twins, UnequalWorkersSeeTheSameImagesAsWell) {
  TaskArgs files = args("files");
  TaskArgs memory = args("idx");
  files.pieces_per_worker = memory.pieces_per_worker = 2;
  expect_twins(open_task(TaskKind::images, memory), open_task(TaskKind::images, files));
}

TEST_F(Twins, AFewImagesToValidateOnAreOfAllClasses) {
  TaskArgs few = args("files");
  few.validation_samples = 3;
  const Task task = open_task(TaskKind::images, few);
  ASSERT_EQ(task.validation.size(), 1u);
  EXPECT_TRUE(at::equal(task.validation[0].targets, at::tensor({0, 1, 2}, at::kLong)));
}

TEST_F(Twins, ACropIsTheRandomBoxResizedAndValidationHasNone) {
  TaskArgs cropped = args("files");
  cropped.image_size = 4;
  const Task plain = open_task(TaskKind::images, cropped);
  cropped.augmentation.crop = true;
  const Task task = open_task(TaskKind::images, cropped);
  ImageSet set = read_images(find_images(cropped.path));
  set_image_size(set, 4);
  const ImageSplit split = split_images(set, cropped.validation_fraction);
  const std::vector<PixelScale> scales = pixel_scales(set, split.training);
  const auto drawn = image_indices(54, {.global_batch = 8, .seed = 5}, 2, {});
  std::vector<std::int64_t> samples;
  for (const std::int64_t k : drawn) samples.push_back(split.training[static_cast<std::size_t>(k)]);
  const std::vector<Move> moves = moves_of({.crop = true}, 5, 2, samples);
  const Batch batch = task.training_batch(2, {});
  for (std::size_t k = 0; k < samples.size(); ++k) {
    const Image whole = decode_image(set.file(samples[k]), 1);
    const Image part = resize_box(whole.view(), random_box(*moves[k].crop, whole.size), {4, 4});
    for (std::size_t i = 0; i < part.pixels.size(); ++i) {
      const double expected = (part.pixels[i] / 255. - scales[0].mean) / scales[0].deviation;
      const auto row = static_cast<std::int64_t>(k);
      EXPECT_NEAR(batch.inputs.view({8, 16})[row][static_cast<std::int64_t>(i)].item<double>(),
                  expected, 1e-5);
    }
  }
  EXPECT_FALSE(at::equal(batch.inputs, plain.training_batch(2, {}).inputs));
  expect_equal(task.validation[0], plain.validation[0]);
}

TEST_F(Twins, ADamagedImageToTrainOnIsNamed) {
  Bytes cut = png_bytes({6, 6}, Bytes(kArea, 1), {.kind = PngKind::grey});
  cut.resize(cut.size() - 20);
  write("files/1/125.png", cut);
  expect_names(io_error([&] { open_task(TaskKind::images, args("files")); }), "1/125.png'",
               "damaged PNG");
}

TEST_F(DataFiles, AHeldOutImageThatIsDamagedIsNamedWhenItIsValidatedOn) {
  for (int k = 0; k < 10; ++k) {
    Bytes png = png_bytes({2, 2}, Bytes(4, 9), {.kind = PngKind::grey});
    if (k == 9) png.resize(png.size() - 20);
    write("a/" + std::to_string(k) + ".png", png);
  }
  const Task task = open_task(TaskKind::images, {.path = folder_, .global_batch = 2});
  ASSERT_EQ(task.validation.size(), 1u);
  expect_names(io_error([&] { task.validation[0]; }), "9.png'", "damaged PNG");
}

}  // namespace
}  // namespace gossamer
