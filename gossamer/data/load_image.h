#pragma once
/// One image of a set at the size of all: out of memory, or decoded.

#include <cstdint>
#include <optional>

#include "gossamer/data/image_set.h"

namespace gossamer {

/// What a load needs on the way; the view that it gives may point there.
struct ImageBuffers {
  Image decoded;
  Image resized;
};

/// Image `k` of a set whose size is set. Where there is a `crop`, a random part of it, see
/// random_box(). Throws IoError for a file that is missing or damaged.
ImageView load_image(const ImageSet& images, std::int64_t k, ImageBuffers& buffers,
                     std::optional<std::uint64_t> crop = {});

}  // namespace gossamer
