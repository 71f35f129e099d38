#pragma once
/// Images with their labels, from a folder in whichever of the known formats it holds.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gossamer {

/// `pixels` has channels·height·width bytes per image, one channel after the other.
struct ImageSet {
  std::int64_t count = 0;
  std::int64_t channels = 1;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t classes = 0;
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;

  std::int64_t pixels_per_channel() const { return height * width; }
  std::int64_t pixels_per_image() const { return channels * height * width; }
};

/// What a file is of its set: its part ("train", "t10k", "test") and its place in that, from 0.
struct FilePlace {
  std::string part;
  std::size_t place = 0;
};

/// A format is known by the names of its files. A new one is a file in this folder and a row of the
/// table in image_set.cpp.
struct ImageFormat {
  std::string_view name;
  std::string_view files;  ///< what they are called, for messages
  std::size_t least_files = 1;
  /// Nothing for the name of another file. Names come without `.gz`.
  std::optional<FilePlace> (*place_of)(std::string_view name);
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

ImageSet read_images(const ImageFiles& files);

/// What was read, for the log: the first file, and how many more.
std::string describe(const ImageFiles& files);

}  // namespace gossamer
