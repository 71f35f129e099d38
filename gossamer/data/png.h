#pragma once
/// PNG files by libpng. Internal to the reader of images.

#include "gossamer/data/image_codec.h"

namespace gossamer {

ImageHeader png_header(const ImageBytes& file);
std::vector<std::uint8_t> decode_png(const ImageBytes& file, const ImageHeader& header);

}  // namespace gossamer
