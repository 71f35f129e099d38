#include "gossamer/data/cifar_images.h"

#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/data/read_bytes.h"

namespace gossamer {
namespace {

constexpr std::int64_t kSide = 32;
constexpr std::int64_t kChannels = 3;
constexpr std::size_t kPixels = kChannels * kSide * kSide;
constexpr std::int64_t kByteLimit = std::int64_t{4} << 30;

/// The last of the label bytes is the class.
struct CifarRecord {
  std::string_view name;
  std::size_t label_bytes = 1;
  std::uint8_t classes = 10;

  std::size_t bytes() const { return label_bytes + kPixels; }
};
constexpr CifarRecord kCifar10{"CIFAR-10", 1, 10};
constexpr CifarRecord kCifar100{"CIFAR-100", 2, 100};

void check_size(const std::filesystem::path& path, const CifarRecord& record, std::size_t bytes) {
  if (bytes > 0 && bytes % record.bytes() == 0) return;
  fail_io({.place = "cifar",
           .what = quoted(path) + " must be a multiple of " + std::to_string(record.bytes()) +
                   " bytes, the label and pixels of an image of " + std::string(record.name),
           .got = std::to_string(bytes),
           .remedy = "it is truncated or of another format; fetch the binary version again"});
}

void check_label(const std::filesystem::path& path, const CifarRecord& record, int label,
                 std::size_t image) {
  if (label < record.classes) return;
  fail_io({.place = "cifar",
           .what = quoted(path) + " must have labels below " + std::to_string(record.classes),
           .got = std::to_string(label) + " for image " + std::to_string(image),
           .remedy = "it is damaged or of another format; fetch the binary version again"});
}

void append_file(const std::filesystem::path& path, const CifarRecord& record, ImageSet& set) {
  const std::vector<std::uint8_t> bytes = read_whole(path, kByteLimit);
  check_size(path, record, bytes.size());
  const std::size_t images = bytes.size() / record.bytes();
  for (std::size_t image = 0; image < images; ++image) {
    const std::uint8_t* pixels = bytes.data() + image * record.bytes() + record.label_bytes;
    check_label(path, record, pixels[-1], image);
    set.labels.push_back(pixels[-1]);
    set.pixels.insert(set.pixels.end(), pixels, pixels + kPixels);
  }
  set.count += static_cast<std::int64_t>(images);
}

ImageSet read_cifar(const std::vector<std::filesystem::path>& files, const CifarRecord& record) {
  ImageSet set{.channels = kChannels, .height = kSide, .width = kSide, .classes = record.classes};
  for (const std::filesystem::path& file : files) append_file(file, record, set);
  return set;
}

}  // namespace

std::optional<FilePlace> place_of_cifar10(std::string_view name) {
  constexpr std::string_view kBatch = "data_batch_?.bin";
  if (name == "test_batch.bin") return FilePlace{"test", 0};
  const std::size_t digit = kBatch.find('?');
  const bool is_batch = name.size() == kBatch.size() &&
                        name.substr(0, digit) == kBatch.substr(0, digit) &&
                        name.substr(digit + 1) == kBatch.substr(digit + 1);
  if (!is_batch || name[digit] < '1' || name[digit] > '9') return std::nullopt;
  return FilePlace{"train", static_cast<std::size_t>(name[digit] - '1')};
}

std::optional<FilePlace> place_of_cifar100(std::string_view name) {
  if (name == "train.bin") return FilePlace{"train", 0};
  if (name == "test.bin") return FilePlace{"test", 0};
  return std::nullopt;
}

ImageSet read_cifar10(const std::vector<std::filesystem::path>& files) {
  return read_cifar(files, kCifar10);
}

ImageSet read_cifar100(const std::vector<std::filesystem::path>& files) {
  return read_cifar(files, kCifar100);
}

}  // namespace gossamer
