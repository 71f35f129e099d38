#pragma once
/// Reads JPEG and PNG files of 8 bits per channel, grey or in colour. The content says which it is,
/// not the name.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "gossamer/data/image.h"

namespace gossamer {

/// An image of more pixels is refused before it is decoded.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

struct ImageHeader {
  std::int64_t channels = 1;  ///< 1: grey, 3: red, green, blue
  ImageSize size;
};

/// Throws IoError, which names the file, for one that is missing, no JPEG or PNG, has alpha or 16
/// bits, or is too large.
ImageHeader read_image_header(const std::filesystem::path& path);

/// Colours of JPEG files are converted as libjpeg does; those for print (CMYK) to red, green and
/// blue as Pillow does. Grey becomes `channels` equal ones. Throws IoError as above, for a damaged
/// file, and for one in colour where `channels` is 1.
Image decode_image(const std::filesystem::path& path, std::int64_t channels);

/// The same of bytes; `name` is for errors.
Image decode_image(const std::string& name, std::span<const std::uint8_t> bytes,
                   std::int64_t channels);

}  // namespace gossamer
