#pragma once
/// What a format of image files has to offer: a row of the table in decode_image.cpp. Internal to
/// the reader of images.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/data/decode_image.h"

namespace gossamer {

struct ImageBytes {
  std::string name;  ///< of the file, in quotes
  std::span<const std::uint8_t> bytes;
};

/// Both functions throw IoError by refuse_image().
struct ImageCodec {
  std::string_view name;
  std::string_view beginning;  ///< of each file
  ImageHeader (*header)(const ImageBytes& file);
  /// Pixel by pixel, header.channels bytes each.
  std::vector<std::uint8_t> (*decode)(const ImageBytes& file, const ImageHeader& header);
};

[[noreturn]] void refuse_image(const std::string& name, const std::string& got,
                               const std::string& remedy);

}  // namespace gossamer
