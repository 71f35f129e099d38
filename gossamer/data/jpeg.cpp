#include "gossamer/data/jpeg.h"

#include <csetjmp>
#include <cstddef>
#include <cstdio>
// These need those before them.
#include <jerror.h>
#include <jpeglib.h>

namespace gossamer {
namespace {

/// Files have about ten. A small file of many on a large image would take minutes.
constexpr int kMostScans = 100;

/// Where libjpeg jumps to when it gives up, and why.
struct Failure {
  jpeg_error_mgr manager;
  std::jmp_buf back;
  char why[JMSG_LENGTH_MAX];
};

[[noreturn]] void give_up(j_common_ptr info) {
  auto* failure = reinterpret_cast<Failure*>(info->err);
  info->err->format_message(info, failure->why);
  std::longjmp(failure->back, 1);
}

/// Warnings are of faults that leave an image, but for a file that ends early.
void hear(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code == JWRN_JPEG_EOF) give_up(info);
}

void count_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  auto* failure = reinterpret_cast<Failure*>(info->err);
  std::snprintf(failure->why, sizeof failure->why, "more than %d scans", kMostScans);
  std::longjmp(failure->back, 1);
}

class Decompressor {
 public:
  explicit Decompressor(const ImageBytes& file) : file_(file) {
    info_.err = jpeg_std_error(&failure_.manager);
    failure_.manager.error_exit = give_up;
    failure_.manager.emit_message = hear;
    progress_.progress_monitor = count_scans;
    run([this] {
      jpeg_create_decompress(&info_);
      info_.progress = &progress_;
      jpeg_mem_src(&info_, file_.bytes.data(), file_.bytes.size());
      jpeg_read_header(&info_, TRUE);
    });
  }
  ~Decompressor() { jpeg_destroy_decompress(&info_); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  jpeg_decompress_struct& info() { return info_; }

  /// Throws IoError where libjpeg gives up in `work`, which must not own anything: it is left
  /// without destructors.
  template <class Work>
  void run(const Work& work) {
    if (setjmp(failure_.back) == 0) {
      work();
      return;
    }
    jpeg_destroy_decompress(&info_);
    refuse_image(file_.name, std::string("a damaged JPEG file (") + failure_.why + ")",
                 "fetch it again, or take it out of the folder");
  }

 private:
  const ImageBytes& file_;
  jpeg_decompress_struct info_ = {};
  jpeg_progress_mgr progress_ = {};
  Failure failure_ = {};
};

/// Cyan, magenta, yellow and black as Adobe writes them, 255 for no ink.
void mix_inks(const std::uint8_t* inks, std::uint8_t* pixels, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const int light = inks[4 * i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      pixels[3 * i + c] = static_cast<std::uint8_t>((inks[4 * i + c] * light + 127) / 255);
    }
  }
}

ImageHeader header_of(const ImageBytes& file, const jpeg_decompress_struct& info) {
  const int components = info.num_components;
  if (components != 1 && components != 3 && components != 4) {
    refuse_image(file.name, std::to_string(components) + " components",
                 "convert it to red, green and blue");
  }
  return {.channels = components == 1 ? 1 : 3,
          .size = {.height = info.image_height, .width = info.image_width}};
}

}  // namespace

ImageHeader jpeg_header(const ImageBytes& file) {
  Decompressor decompressor(file);
  return header_of(file, decompressor.info());
}

std::vector<std::uint8_t> decode_jpeg(const ImageBytes& file, const ImageHeader& header) {
  Decompressor decompressor(file);
  jpeg_decompress_struct& info = decompressor.info();
  const bool is_for_print = info.num_components == 4;
  info.out_color_space = header.channels == 1 ? JCS_GRAYSCALE : is_for_print ? JCS_CMYK : JCS_RGB;
  const auto width = static_cast<std::size_t>(header.size.width);
  const std::size_t row = width * static_cast<std::size_t>(header.channels);
  std::vector<std::uint8_t> pixels(row * static_cast<std::size_t>(header.size.height));
  std::vector<std::uint8_t> inks(is_for_print ? 4 * width : 0);
  decompressor.run([&] {
    jpeg_start_decompress(&info);
    while (info.output_scanline < info.output_height) {
      std::uint8_t* const to = pixels.data() + info.output_scanline * row;
      JSAMPROW line = is_for_print ? inks.data() : to;
      jpeg_read_scanlines(&info, &line, 1);
      if (is_for_print) mix_inks(inks.data(), to, width);
    }
    jpeg_finish_decompress(&info);
  });
  return pixels;
}

}  // namespace gossamer
