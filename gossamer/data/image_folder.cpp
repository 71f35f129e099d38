#include "gossamer/data/image_folder.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/data/decode_image.h"
#include "gossamer/data/read_bytes.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEndings[] = {".jpg", ".jpeg", ".png"};

bool is_hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

bool is_image(const fs::path& path) {
  std::string ending = path.extension();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::find(kEndings, ending) != std::end(kEndings) && !is_hidden(path);
}

std::vector<fs::path> folders_among(const std::vector<fs::path>& entries) {
  std::vector<fs::path> folders;
  for (const fs::path& entry : entries) {
    std::error_code ignored;
    if (!is_hidden(entry) && fs::is_directory(entry, ignored)) folders.push_back(entry);
  }
  return folders;
}

/// Ends at the first.
bool holds_images(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (is_image(entry->path())) return true;
  }
  return false;
}

/// None unless one of the folders holds images.
ImagePlaces classes_among(const std::vector<fs::path>& folders) {
  ImagePlaces classes;
  if (std::ranges::none_of(folders, holds_images)) return classes;
  for (const fs::path& folder : folders) classes.emplace(classes.size(), folder);
  return classes;
}

void add_class(const fs::path& folder, ImageSet& images) {
  const std::size_t had = images.names.size();
  for (const fs::path& entry : entries_of(folder)) {
    if (!is_image(entry)) continue;
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(entry, error);
    if (error) {
      fail_io({.place = "images",
               .what = quoted(entry) + " cannot be read",
               .got = error.message(),
               .remedy = "take it out of the folder"});
    }
    images.names.push_back(folder.filename() / entry.filename());
    images.listing.add_file(images.names.back(), bytes);
  }
  if (images.names.size() == had) {
    fail_io({.place = "images",
             .what = quoted(folder) + " must hold the images of a class, as folders beside it do",
             .got = "no file that ends in .jpg, .jpeg or .png",
             .remedy = "move it elsewhere, or put images there"});
  }
  images.labels.resize(images.names.size(), static_cast<std::int32_t>(images.classes++));
}

std::string describe(const ImageSize& size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height);
}

[[noreturn]] void refuse_sizes(const ImageSet& images, std::int64_t other, const ImageSize& size) {
  fail_io({.place = "images",
           .what = "the images of a set must have one size",
           .got = describe(images.size()) + " in " + quoted(images.file(0)) + " and " +
                  describe(size) + " in " + quoted(images.file(other)),
           .remedy = "give image_size, to which they are resized (--image-size 224)"});
}

}  // namespace

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error) {
    fail_io({.place = "images",
             .what = quoted(folder) + " is not a folder with images",
             .got = error.message(),
             .remedy = "give the folder that holds their files"});
  }
  std::ranges::sort(entries);
  return entries;
}

ImageParts class_folders(const std::vector<fs::path>& entries) {
  const std::vector<fs::path> folders = folders_among(entries);
  if (ImagePlaces classes = classes_among(folders); !classes.empty()) return {{"train", classes}};
  ImageParts parts;
  for (const fs::path& part : folders) {
    std::error_code error;  // of a folder that may not be entered: it is no part
    if (fs::directory_iterator(part, error); error) continue;
    ImagePlaces classes = classes_among(folders_among(entries_of(part)));
    if (!classes.empty()) parts.emplace(part.filename(), std::move(classes));
  }
  return parts;
}

ImageSet read_class_folders(const std::vector<fs::path>& folders) {
  ImageSet images{.folder = folders.at(0).parent_path()};
  for (const fs::path& folder : folders) add_class(folder, images);
  images.count = static_cast<std::int64_t>(images.names.size());
  return images;
}

void measure_files(ImageSet& images, bool of_one_size) {
  images.channels = 1;
  for (std::int64_t k = 0; k < images.count; ++k) {
    if (!of_one_size && images.channels == 3) return;
    const ImageHeader header = read_image_header(images.file(k));
    images.channels = std::max(images.channels, header.channels);
    if (!of_one_size) continue;
    if (k == 0) {
      images.height = header.size.height;
      images.width = header.size.width;
    }
    if (header.size != images.size()) refuse_sizes(images, k, header.size);
  }
}

}  // namespace gossamer
