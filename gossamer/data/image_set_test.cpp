#include "gossamer/data/image_set.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gossamer/data/data_fixture.h"
#include "gossamer/data/idx_images.h"

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
  EXPECT_EQ(set.labels, (std::vector<std::int32_t>{9, 0, 3}));
  EXPECT_EQ(set.count, 3);
  EXPECT_EQ(set.classes, 10);
  EXPECT_EQ(set.pixels_per_image(), 3 * 32 * 32);
  EXPECT_EQ(set.pixels.size(), 3u * 3072);
  EXPECT_EQ(set.pixels[3072], 1);
  EXPECT_EQ(read_images(find_images(folder_, "test")).labels, std::vector<std::int32_t>{5});
}

TEST_F(DataFiles, OfTheTwoLabelsOfAHundredClassesTheFineOneCounts) {
  write("train.bin", cifar_bytes({{19, 99}, {0, 7}}));
  const ImageSet set = read_images(find_images(folder_));
  EXPECT_EQ(set.labels, (std::vector<std::int32_t>{99, 7}));
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
