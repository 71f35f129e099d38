#include "gossamer/data/png.h"

#include <png.h>

namespace gossamer {
namespace {

/// libpng's simplified reader. It gives samples of less than 8 bits and palettes as bytes.
class Reader {
 public:
  explicit Reader(const ImageBytes& file) : file_(file) {
    image_.version = PNG_IMAGE_VERSION;
    png_image_begin_read_from_memory(&image_, file.bytes.data(), file.bytes.size());
    check();
  }
  ~Reader() { png_image_free(&image_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  png_image& image() { return image_; }

  /// Throws IoError where libpng has failed.
  void check() const {
    if (!PNG_IMAGE_FAILED(image_)) return;
    refuse_image(file_.name, std::string("a damaged PNG file (") + image_.message + ")",
                 "fetch it again, or take it out of the folder");
  }

 private:
  const ImageBytes& file_;
  png_image image_ = {};
};

}  // namespace

ImageHeader png_header(const ImageBytes& file) {
  Reader reader(file);
  const png_image& image = reader.image();
  if ((image.format & PNG_FORMAT_FLAG_ALPHA) != 0) {
    refuse_image(file.name, "transparency (alpha)",
                 "put it on a background: magick IN.png -background white -alpha remove OUT.png");
  }
  if ((image.format & PNG_FORMAT_FLAG_LINEAR) != 0) {
    refuse_image(file.name, "16 bits per channel", "convert it: magick IN.png -depth 8 OUT.png");
  }
  return {.channels = (image.format & PNG_FORMAT_FLAG_COLOR) != 0 ? 3 : 1,
          .size = {.height = image.height, .width = image.width}};
}

std::vector<std::uint8_t> decode_png(const ImageBytes& file, const ImageHeader& header) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(header.channels) *
                                   static_cast<std::size_t>(header.size.pixels()));
  Reader reader(file);
  reader.image().format = header.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_image_finish_read(&reader.image(), nullptr, pixels.data(), 0, nullptr);
  reader.check();
  return pixels;
}

}  // namespace gossamer
