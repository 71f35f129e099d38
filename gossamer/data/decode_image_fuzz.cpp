// JPEG and PNG files.

#include "gossamer/base/fuzz.h"
#include "gossamer/data/decode_image.h"

namespace gossamer {

/// The first byte is odd for a set in colour.
bool fuzz_decode_image(std::span<const std::byte> bytes) {
  FuzzBytes input(bytes);
  const std::int64_t channels = input.take<std::uint8_t>() % 2 != 0 ? 3 : 1;
  const std::string_view file = input.text();
  return takes([&] {
    const Image image = decode_image(
        "'file'", {reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, channels);
    fuzz_check(image.channels == channels, "the channels that were asked for");
    fuzz_check(image.size.height > 0 && image.size.width > 0, "an image has pixels");
    fuzz_check(image.size.pixels() <= kMostPixels, "not too many of them");
    fuzz_check(image.pixels.size() == static_cast<std::size_t>(channels * image.size.pixels()),
               "all pixels of each channel");
  });
}

}  // namespace gossamer
