#include "gossamer/data/image_set.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "gossamer/base/errors.h"
#include "gossamer/data/cifar_images.h"
#include "gossamer/data/idx_images.h"
#include "gossamer/data/read_bytes.h"

namespace gossamer {
namespace {

constexpr ImageFormat kFormats[] = {
    {"IDX", "*-images-idx3-ubyte and *-labels-idx1-ubyte", 2, place_of_idx, read_idx_files},
    {"CIFAR-10", "data_batch_1.bin, data_batch_2.bin, ... and test_batch.bin", 1, place_of_cifar10,
     read_cifar10},
    {"CIFAR-100", "train.bin and test.bin", 1, place_of_cifar100, read_cifar100},
};

using Places = std::map<std::size_t, std::filesystem::path>;
using Parts = std::map<std::string, Places>;

[[noreturn]] void refuse(const std::string& what, const std::string& got,
                         const std::string& remedy) {
  fail_io({.place = "images", .what = what, .got = got, .remedy = remedy});
}

void append(std::string& list, std::string_view word) {
  list.append(list.empty() ? "" : ", ").append(word);
}

/// In the order of their names, so that a plain file comes before the same with .gz.
std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error) {
    refuse(quoted(folder) + " is not a folder with images", error.message(),
           "give the folder that holds their files");
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : entries) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

Parts parts_of(const ImageFormat& format, const std::vector<std::filesystem::path>& files) {
  Parts parts;
  for (const std::filesystem::path& file : files) {
    const bool packed = file.extension() == ".gz";
    const auto place = format.place_of((packed ? file.stem() : file.filename()).string());
    if (place) parts[place->part].emplace(place->place, file);
  }
  return parts;
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

[[noreturn]] void refuse_part(const std::filesystem::path& folder, const Parts& parts,
                              const std::string& part) {
  std::string have;
  for (const auto& item : parts) append(have, item.first);
  refuse(quoted(folder) + " has no part '" + part + "'", "parts " + have,
         "name one of those, or none");
}

/// The files of the part in their order, if none is missing between them.
ImageFiles complete(const ImageFormat& format, const std::string& part, const Places& places) {
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
  const std::vector<std::filesystem::path> files = files_in(folder);
  std::string names;
  const ImageFormat* found = nullptr;
  for (const ImageFormat& format : kFormats) {
    if (parts_of(format, files).empty()) continue;
    append(names, format.name);
    found = found == nullptr ? &format : found;
  }
  if (found == nullptr || names != found->name) refuse_folder(folder, names);
  const Parts parts = parts_of(*found, files);
  auto chosen = parts.find(part.empty() ? "train" : part);
  if (chosen == parts.end() && !part.empty()) refuse_part(folder, parts, part);
  if (chosen == parts.end()) chosen = parts.begin();
  return complete(*found, chosen->first, chosen->second);
}

ImageSet read_images(const ImageFiles& files) { return files.format->read(files.paths); }

std::string describe(const ImageFiles& files) {
  const std::size_t more = files.paths.size() - 1;
  std::string text = files.paths.front().string();
  if (more > 0) text.append(" and ").append(std::to_string(more)).append(" more");
  return text;
}

}  // namespace gossamer
