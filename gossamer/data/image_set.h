#pragma once
/// Images with their labels, from a folder in whichever of the known formats it holds.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/data/content.h"
#include "gossamer/data/image.h"

namespace gossamer {

/// All images of a set in memory, or the files of each.
struct ImageSet {
  std::int64_t count = 0;
  std::int64_t channels = 1;
  std::int64_t height = 0;  ///< of all, see set_image_size()
  std::int64_t width = 0;
  std::int64_t classes = 0;
  std::vector<std::uint8_t>
      pixels;  ///< channels·height·width bytes per image, as ImageView has them
  std::vector<std::int32_t> labels;
  std::filesystem::path folder;
  std::vector<std::string> names =
      {};                ///< of files in `folder`, by image; none: they are in memory
  Content listing = {};  ///< of these files

  ImageSize size() const { return {.height = height, .width = width}; }
  std::int64_t pixels_per_channel() const { return height * width; }
  std::int64_t pixels_per_image() const { return channels * height * width; }
  std::filesystem::path file(std::int64_t image) const;
};

/// What a file is of its set: its part ("train", "t10k", "test") and its place in that, from 0.
struct FilePlace {
  std::string part;
  std::size_t place = 0;
};

/// The files of each part of a set, or the folders of its classes.
using ImagePlaces = std::map<std::size_t, std::filesystem::path>;
using ImageParts = std::map<std::string, ImagePlaces>;

/// A format is known by the names of its files. A new one is a file in this folder and a row of the
/// table in image_set.cpp.
struct ImageFormat {
  std::string_view name;
  std::string_view files;  ///< what they are called, for messages
  std::size_t least_files = 1;
  /// What a folder has of the format; `entries` are all that it has, sorted.
  ImageParts (*parts_of)(const std::vector<std::filesystem::path>& entries);
  /// All files of a part. Throws IoError that names the file that is wrong.
  ImageSet (*read)(const std::vector<std::filesystem::path>& files);
};

std::span<const ImageFormat> image_formats();

/// The files of one part of a set, in the order of their places.
struct ImageFiles {
  const ImageFormat* format = nullptr;
  std::vector<std::filesystem::path> paths;
};

/// The files of the part in `folder`, packed by gzip or not; where both are there, the plain one.
/// When `part` is empty: "train" if it is there, else the first in the alphabet. Throws IoError
/// when the folder holds no images, several formats, no such part, or not all of it.
ImageFiles find_images(const std::filesystem::path& folder, const std::string& part = "");

/// Images in files of their own have no size yet.
ImageSet read_images(const ImageFiles& files);

/// What was read, for the log: the first file, and how many more.
std::string describe(const ImageFiles& files);

/// What the set contains: pixels and labels, or names and lengths of the files. To be asked before
/// set_image_size().
std::string content_of(const ImageSet& images);

/// The largest side that images may be given.
inline constexpr std::int64_t kMostImageSize = 8192;

/// Gives all images `size` × `size` pixels, in memory at once and from files when they are asked
/// for; with 0 they keep their own size. Throws std::invalid_argument for a size out of range, and
/// IoError where they have several sizes of their own.
void set_image_size(ImageSet& images, std::int64_t size);

}  // namespace gossamer
