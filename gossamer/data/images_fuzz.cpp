// Folders of images: IDX and CIFAR, several files, packed by gzip or not; PNG files of classes.

#include "gossamer/base/fuzz.h"
#include "gossamer/base/gzip.h"
#include "gossamer/base/scratch_folder.h"
#include "gossamer/data/image_set.h"
#include "gossamer/data/load_image.h"

namespace gossamer {
namespace {

constexpr std::string_view kNames[] = {"train-images-idx3-ubyte",
                                       "train-labels-idx1-ubyte",
                                       "data_batch_1.bin",
                                       "data_batch_2.bin",
                                       "test_batch.bin",
                                       "train.bin",
                                       "test.bin",
                                       "notes.txt",
                                       "cat/1.png",
                                       "dog/2.jpg",
                                       "val/cat/3.jpeg"};
constexpr std::size_t kRecords[] = {0, 3072, 3073, 3074, 2 * 3073, 2 * 3074};

/// A file is its name, whether it is packed, the size that it is filled up to, and its first bytes.
void put_next(const ScratchFolder& folder, FuzzBytes& input) {
  std::string name(kNames[input.take<std::uint8_t>() % std::size(kNames)]);
  const bool is_packed = input.take<std::uint8_t>() % 2 != 0;
  const std::size_t least = kRecords[input.take<std::uint8_t>() % std::size(kRecords)];
  std::string text(input.take_text(input.take<std::uint8_t>()));
  text.resize(std::max(text.size(), least));
  if (is_packed) name += ".gz";
  std::filesystem::create_directories((folder / name).parent_path());
  folder.put(name, is_packed ? gzipped(text) : text);
}

}  // namespace

bool fuzz_images(std::span<const std::byte> bytes) {
  FuzzBytes input(bytes);
  const ScratchFolder folder;
  for (int file = 0; file < 3 && !input.empty(); ++file) put_next(folder, input);
  return takes([&] {
    ImageSet set = read_images(find_images(folder.path()));
    const auto count = static_cast<std::size_t>(set.count);
    fuzz_check(count > 0, "a set has images");
    fuzz_check(set.labels.size() == count, "a label for each image");
    for (const std::int32_t label : set.labels) fuzz_check(label < set.classes, "a class");
    if (set.names.empty()) {
      fuzz_check(set.pixels.size() == count * static_cast<std::size_t>(set.pixels_per_image()),
                 "all pixels of each image");
      return;
    }
    set_image_size(set, 3);
    ImageBuffers buffers;
    for (std::int64_t k = 0; k < set.count; ++k) {
      fuzz_check(load_image(set, k, buffers).size == set.size(), "the size of the set");
    }
  });
}

}  // namespace gossamer
