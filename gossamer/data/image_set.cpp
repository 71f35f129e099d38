#include "gossamer/data/image_set.h"

#include <algorithm>
#include <iterator>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/data/cifar_images.h"
#include "gossamer/data/fit_image.h"
#include "gossamer/data/idx_images.h"
#include "gossamer/data/image_folder.h"
#include "gossamer/data/read_bytes.h"

namespace gossamer {
namespace {

using Paths = std::vector<std::filesystem::path>;

/// Of a format whose files are known by their names, without `.gz`. A plain file comes before the
/// same with .gz.
template <auto place_of>
ImageParts parts_by_name(const Paths& entries) {
  ImageParts parts;
  for (const std::filesystem::path& file : entries) {
    const bool packed = file.extension() == ".gz";
    const std::optional<FilePlace> place =
        place_of((packed ? file.stem() : file.filename()).string());
    if (place) parts[place->part].emplace(place->place, file);
  }
  return parts;
}

constexpr ImageFormat kFormats[] = {
    {"IDX", "*-images-idx3-ubyte and *-labels-idx1-ubyte", 2, parts_by_name<place_of_idx>,
     read_idx_files},
    {"CIFAR-10", "data_batch_1.bin, data_batch_2.bin, ... and test_batch.bin", 1,
     parts_by_name<place_of_cifar10>, read_cifar10},
    {"CIFAR-100", "train.bin and test.bin", 1, parts_by_name<place_of_cifar100>, read_cifar100},
    {"class folders", "CLASS/*.jpg, *.jpeg or *.png, or the same in train/CLASS, val/CLASS, ...", 1,
     class_folders, read_class_folders},
};

[[noreturn]] void refuse(const std::string& what, const std::string& got,
                         const std::string& remedy) {
  fail_io({.place = "images", .what = what, .got = got, .remedy = remedy});
}

void append(std::string& list, std::string_view word) {
  list.append(list.empty() ? "" : ", ").append(word);
}

[[noreturn]] void refuse_folder(const std::filesystem::path& folder, std::string_view formats) {
  std::string known;
  for (const ImageFormat& format : kFormats) {
    known.append(known.empty() ? "" : "; ").append(format.name).append(": ").append(format.files);
  }
  refuse(quoted(folder) + " must hold the images of one set",
         formats.empty() ? "none" : "several: " + std::string(formats),
         "a set has one of these groups of files, plain or .gz: " + known);
}

[[noreturn]] void refuse_part(const std::filesystem::path& folder, const ImageParts& parts,
                              const std::string& part) {
  std::string have;
  for (const auto& item : parts) append(have, item.first);
  refuse(quoted(folder) + " has no part '" + part + "'", "parts " + have,
         "name one of those, or none");
}

/// The files of the part in their order, if none is missing between them.
ImageFiles complete(const ImageFormat& format, const std::string& part, const ImagePlaces& places) {
  const bool is_complete =
      places.size() >= format.least_files && places.rbegin()->first + 1 == places.size();
  ImageFiles files{.format = &format};
  std::string have;
  for (const auto& [place, path] : places) {
    files.paths.push_back(path);
    append(have, path.filename().string());
  }
  if (is_complete) return files;
  refuse("part '" + part + "' of " + quoted(files.paths.front().parent_path()) + " is not complete",
         have, std::string(format.name) + " sets have " + std::string(format.files));
}

}  // namespace

std::span<const ImageFormat> image_formats() { return kFormats; }

ImageFiles find_images(const std::filesystem::path& folder, const std::string& part) {
  const Paths entries = entries_of(folder);
  std::string names;
  const ImageFormat* found = nullptr;
  ImageParts parts;
  for (const ImageFormat& format : kFormats) {
    ImageParts here = format.parts_of(entries);
    if (here.empty()) continue;
    append(names, format.name);
    found = &format;
    parts = std::move(here);
  }
  if (found == nullptr || names != found->name) refuse_folder(folder, names);
  auto chosen = parts.find(part.empty() ? "train" : part);
  if (chosen == parts.end() && !part.empty()) refuse_part(folder, parts, part);
  if (chosen == parts.end()) chosen = parts.begin();
  return complete(*found, chosen->first, chosen->second);
}

ImageSet read_images(const ImageFiles& files) { return files.format->read(files.paths); }

std::filesystem::path ImageSet::file(std::int64_t image) const { return folder / names[at(image)]; }

std::string describe(const ImageFiles& files) {
  const std::size_t more = files.paths.size() - 1;
  std::string text = files.paths.front().string();
  if (more > 0) text.append(" and ").append(std::to_string(more)).append(" more");
  return text;
}

std::string content_of(const ImageSet& images) {
  if (!images.names.empty()) return images.listing.text();
  Content content;
  content.add(images.pixels);
  content.add(std::vector<std::uint8_t>(images.labels.begin(), images.labels.end()));
  return content.text();
}

void set_image_size(ImageSet& images, std::int64_t size) {
  if (size < 0 || size > kMostImageSize) {
    fail_argument(
        {.place = "images",
         .what = "image_size must be at least 0 and at most " + std::to_string(kMostImageSize),
         .got = std::to_string(size),
         .remedy = "224 is usual for photographs"});
  }
  const ImageSize own = images.size();
  const bool is_in_memory = images.names.empty();
  if (!is_in_memory) measure_files(images, size == 0);
  if (size == 0) return;
  images.height = images.width = size;
  if (!is_in_memory || own == images.size()) return;
  std::vector<std::uint8_t> pixels;
  const std::int64_t per_image = images.channels * own.pixels();
  for (std::int64_t k = 0; k < images.count; ++k) {
    const ImageView image{images.pixels.data() + k * per_image, images.channels, own};
    const Image fitted = fit_image(image, images.size());
    pixels.insert(pixels.end(), fitted.pixels.begin(), fitted.pixels.end());
  }
  images.pixels = std::move(pixels);
}

}  // namespace gossamer
