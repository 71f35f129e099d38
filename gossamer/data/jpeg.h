#pragma once
/// JPEG files by libjpeg-turbo. Internal to the reader of images.

#include "gossamer/data/image_codec.h"

namespace gossamer {

ImageHeader jpeg_header(const ImageBytes& file);
std::vector<std::uint8_t> decode_jpeg(const ImageBytes& file, const ImageHeader& header);

}  // namespace gossamer
