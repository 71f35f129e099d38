#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "gossamer/base/errors.h"
#include "gossamer/torch/data/byte_corpus.h"
#include "gossamer/torch/data/idx.h"
#include "gossamer/torch/data/image_batches.h"
#include "gossamer/torch/data/read_bytes.h"
#include "gossamer/torch/data/sharding.h"
#include "gossamer/torch/data/task.h"
#include "gossamer/torch/data/token_windows.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

/// A folder of its own that disappears with the test.
class DataFiles : public testing::Test {
 protected:
  DataFiles() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() /
              ("gossamer_data_" + std::to_string(getpid()) + "_" + info->name());
    fs::create_directories(folder_);
  }
  ~DataFiles() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const Bytes& bytes) const {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  fs::path write_gz(const std::string& name, const Bytes& bytes) const {
    const fs::path path = folder_ / name;
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path;
  }

  fs::path folder_;
};

Bytes idx_bytes(const std::vector<int>& sizes, int values) {
  Bytes bytes{0, 0, 8, static_cast<std::uint8_t>(sizes.size())};
  for (const int size : sizes) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes.push_back(static_cast<std::uint8_t>(size >> shift));
    }
  }
  for (int i = 0; i < values; ++i) bytes.push_back(static_cast<std::uint8_t>(i % 10));
  return bytes;
}

/// The message of the IoError that `call` throws.
std::string io_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const IoError& error) {
    return error.what();
  }
  return "no error";
}

void expect_names(const std::string& message, const std::string& file, const std::string& what) {
  EXPECT_NE(message.find(file), std::string::npos) << message;
  EXPECT_NE(message.find(what), std::string::npos) << message;
}

TEST_F(DataFiles, IdxIsReadPlainAndPacked) {
  const Bytes bytes = idx_bytes({3, 2, 4}, 24);
  for (const fs::path& path : {write("a", bytes), write_gz("a.gz", bytes)}) {
    const IdxArray array = read_idx(path);
    EXPECT_EQ(array.sizes, (std::vector<std::int64_t>{3, 2, 4}));
    EXPECT_EQ(array.values, Bytes(bytes.begin() + 16, bytes.end()));
  }
}

TEST_F(DataFiles, BadIdxFilesAreNamedWithTheirFault) {
  Bytes magic = idx_bytes({4}, 4);
  magic[2] = 9;
  const Bytes good = idx_bytes({4}, 4);
  const auto fault = [&](const fs::path& path) { return io_error([&] { read_idx(path); }); };
  expect_names(fault(write("magic", magic)), "magic", "0 0 9 1");
  expect_names(fault(write("none", {})), "none", "not an IDX file");
  expect_names(fault(write("short", {0, 0, 8, 3, 0})), "short", "header");
  expect_names(fault(write("cut", Bytes(good.begin(), good.end() - 1))), "cut", "12 bytes");
  expect_names(fault(write("long", idx_bytes({4}, 5))), "long", "13");
  expect_names(fault(write("empty", idx_bytes({0}, 0))), "empty", "is empty");
  expect_names(fault(write("huge", idx_bytes({1 << 30, 1 << 30, 1 << 30}, 1))), "huge", "more");
  expect_names(fault(folder_ / "absent"), "absent", "not a file");
  expect_names(fault(folder_), folder_.filename().string(), "not a file");
  const fs::path packed = write_gz("packed.gz", idx_bytes({4000}, 4000));
  fs::resize_file(packed, fs::file_size(packed) / 2);
  expect_names(fault(packed), "packed.gz", "broken gzip");
}

TEST_F(DataFiles, ImagesNeedOneLabelEach) {
  const fs::path images = write("images", idx_bytes({4, 2, 2}, 16));
  EXPECT_EQ(read_images(images, write("labels", idx_bytes({4}, 4))).classes, 4);
  const fs::path five = write("five", idx_bytes({5}, 5));
  expect_names(io_error([&] { read_images(images, five); }), "five", "4 images");
  expect_names(io_error([&] { read_images(five, five); }), "five", "3 or 4 dimensions");
  const ImageSet colour =
      read_images(write("rgb", idx_bytes({4, 3, 2, 1}, 24)), write("labels", idx_bytes({4}, 4)));
  EXPECT_EQ(colour.channels, 3);
  EXPECT_EQ(colour.pixels_per_image(), 6);
}

TEST_F(DataFiles, TheFilesOfASetAreFoundByTheirNames) {
  expect_names(io_error([&] { find_images(folder_); }), folder_.filename().string(), "none");
  write("t10k-images-idx3-ubyte.gz", {});
  write("t10k-labels-idx1-ubyte", {});
  EXPECT_EQ(find_images(folder_).images.filename(), "t10k-images-idx3-ubyte.gz");
  write("train-images-idx3-ubyte", {});
  EXPECT_EQ(find_images(folder_).labels.filename(), "t10k-labels-idx1-ubyte");
  write("train-labels-idx1-ubyte", {});
  EXPECT_EQ(find_images(folder_).labels.filename(), "train-labels-idx1-ubyte");
  EXPECT_EQ(find_images(folder_, "t10k").labels.filename(), "t10k-labels-idx1-ubyte");
  expect_names(io_error([&] { find_images(folder_, "test"); }), "test-", "t10k, train");
}

TEST_F(DataFiles, ACorpusIsTheFilesOfAFolderInTheOrderOfTheirPaths) {
  write("b.py", {'b'});
  write("a/z.py", {'z', 'z'});
  write("a/note.txt", {'n'});
  write("c.py", {'c'});
  EXPECT_EQ(read_corpus(folder_, {.suffixes = {".py"}}), (Bytes{'z', 'z', 'b', 'c'}));
  EXPECT_EQ(read_corpus(folder_, {.suffixes = {".py"}, .max_bytes = 3}), (Bytes{'z', 'z', 'b'}));
  EXPECT_EQ(read_corpus(folder_, {.suffixes = {".py", ".txt"}}).size(), 5u);
  EXPECT_EQ(read_corpus(folder_, {}).size(), 5u);
  EXPECT_EQ(read_corpus(folder_ / "c.py", {}), Bytes{'c'});
  EXPECT_EQ(read_corpus(write_gz("packed.gz", {'p'}), {}), Bytes{'p'});
  expect_names(io_error([&] { read_corpus(folder_, {.suffixes = {".cc"}}); }), "'.cc'", "no bytes");
  expect_names(io_error([&] { read_corpus(write("empty", {}), {}); }), "empty", "no bytes");
  expect_names(io_error([&] { read_corpus(folder_ / "absent", {}); }), "absent", "not a file");
}

TEST(Sharding, PermutedIsAPermutationForEverySize) {
  for (std::uint64_t count = 1; count <= 70; ++count) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < count; ++i) seen.insert(permuted(i, count, 5));
    EXPECT_EQ(seen.size(), count);
    EXPECT_EQ(*seen.rbegin(), count - 1);
  }
}

TEST(Sharding, PermutedMixesAndDependsOnTheKey) {
  // Of n! permutations few leave many places fixed: the expected number of fixed points is one.
  int fixed = 0;
  int equal = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    fixed += permuted(i, 1000, 7) == i;
    equal += permuted(i, 1000, 7) == permuted(i, 1000, 8);
  }
  EXPECT_LT(fixed, 10);
  EXPECT_LT(equal, 10);
}

TEST(Sharding, ImpossibleShardsAreRefused) {
  EXPECT_THROW(local_range(8, {.worker = 4, .workers = 4}), std::invalid_argument);
  EXPECT_THROW(local_range(8, {.worker = -1, .workers = 4}), std::invalid_argument);
  EXPECT_THROW(local_range(3, {.worker = 0, .workers = 4}), std::invalid_argument);
}

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

TEST(ImageBatches, PixelsAreScaledToMeanZeroAndDeviationOne) {
  const ImageSet images{.count = 2,
                        .height = 1,
                        .width = 2,
                        .classes = 2,
                        .pixels = {0, 255, 255, 0},
                        .labels = {1, 0}};
  const PixelScale scale = pixel_scale(images, {0, 1});
  EXPECT_DOUBLE_EQ(scale.mean, 0.5);
  EXPECT_DOUBLE_EQ(scale.deviation, 0.5);
  const Batch batch = image_batch(images, scale, {1, 0});
  EXPECT_TRUE(at::equal(batch.inputs.flatten(), at::tensor({1.f, -1.f, -1.f, 1.f})));
  EXPECT_TRUE(at::equal(batch.targets, at::tensor({0, 1}, at::kLong)));
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
  for (const TaskKind& kind : task_kinds()) {
    if (kind.name == "translation") continue;  // its batches are cut by tokens, see its own tests
    const bool text = kind.name == "text";
    const Task task = kind.open({.path = text ? folder_ / "text.txt" : folder_,
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
    EXPECT_THROW(kind.open({.path = folder_, .global_batch = 0}), std::invalid_argument);
  }
  EXPECT_THROW(find_task("txt"), std::invalid_argument);
}

TEST(RealData, HandwrittenDigitsHaveTheirPublishedSizes) {
  const fs::path folder = "../shared/data/mnist";
  if (!fs::exists(folder)) GTEST_SKIP() << "no folder " << folder;
  const ImagePaths paths = find_images(folder, "t10k");
  const ImageSet images = read_images(paths.images, paths.labels);
  EXPECT_EQ(images.count, 10000);
  EXPECT_EQ(images.height, 28);
  EXPECT_EQ(images.classes, 10);
  // The published counts of the test set: 980 zeros, 1135 ones.
  EXPECT_EQ(std::count(images.labels.begin(), images.labels.end(), 0), 980);
  EXPECT_EQ(std::count(images.labels.begin(), images.labels.end(), 1), 1135);
}

}  // namespace
}  // namespace gossamer
