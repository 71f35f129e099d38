#include "gossamer/data/load_image.h"

#include "gossamer/data/augment.h"
#include "gossamer/data/decode_image.h"
#include "gossamer/data/fit_image.h"

namespace gossamer {
namespace {

ImageView whole_image(const ImageSet& images, std::int64_t k, Image& buffer) {
  if (images.names.empty()) {
    return {.pixels = images.pixels.data() + k * images.pixels_per_image(),
            .channels = images.channels,
            .size = images.size()};
  }
  buffer = decode_image(images.file(k), images.channels);
  return buffer.view();
}

}  // namespace

ImageView load_image(const ImageSet& images, std::int64_t k, ImageBuffers& buffers,
                     std::optional<std::uint64_t> crop) {
  const ImageView whole = whole_image(images, k, buffers.decoded);
  if (!crop && whole.size == images.size()) return whole;
  buffers.resized = crop ? resize_box(whole, random_box(*crop, whole.size), images.size())
                         : fit_image(whole, images.size());
  return buffers.resized.view();
}

}  // namespace gossamer
