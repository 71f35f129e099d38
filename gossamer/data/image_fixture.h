#pragma once
/// For tests and benchmarks: JPEG files by libjpeg, and PNG files made by hand, of all kinds.

#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "gossamer/data/image.h"
// This needs <cstdio> before it.
#include <jpeglib.h>

namespace gossamer {

using ImageFileBytes = std::vector<std::uint8_t>;

inline void append_number(ImageFileBytes& bytes, std::uint32_t number) {
  for (const int shift : {24, 16, 8, 0})
    bytes.push_back(static_cast<std::uint8_t>(number >> shift));
}

inline void append_chunk(ImageFileBytes& png, std::string_view type,
                         const ImageFileBytes& content) {
  append_number(png, static_cast<std::uint32_t>(content.size()));
  const std::size_t begin = png.size();
  png.insert(png.end(), type.begin(), type.end());
  png.insert(png.end(), content.begin(), content.end());
  append_number(png, static_cast<std::uint32_t>(
                         crc32(0, png.data() + begin, static_cast<uInt>(png.size() - begin))));
}

/// How PNG numbers the kinds of pixels.
enum class PngKind : std::uint8_t { grey = 0, rgb = 2, palette = 3, grey_alpha = 4, rgb_alpha = 6 };

struct PngOptions {
  PngKind kind = PngKind::rgb;
  std::uint8_t bits = 8;
  ImageFileBytes palette = {};  ///< red, green, blue of each colour
  ImageFileBytes alpha = {};    ///< of each colour
};

/// `rows` are the bytes of the pixels as the file has them.
inline ImageFileBytes png_bytes(ImageSize size, const ImageFileBytes& rows,
                                const PngOptions& options = {}) {
  ImageFileBytes png{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  ImageFileBytes header;
  append_number(header, static_cast<std::uint32_t>(size.width));
  append_number(header, static_cast<std::uint32_t>(size.height));
  header.insert(header.end(), {options.bits, static_cast<std::uint8_t>(options.kind), 0, 0, 0});
  append_chunk(png, "IHDR", header);
  if (!options.palette.empty()) append_chunk(png, "PLTE", options.palette);
  if (!options.alpha.empty()) append_chunk(png, "tRNS", options.alpha);
  ImageFileBytes filtered;
  const std::size_t row = rows.size() / static_cast<std::size_t>(size.height);
  for (std::size_t at = 0; at + row <= rows.size() && row > 0; at += row) {
    filtered.push_back(0);  // no filter
    filtered.insert(filtered.end(), rows.begin() + static_cast<std::ptrdiff_t>(at),
                    rows.begin() + static_cast<std::ptrdiff_t>(at + row));
  }
  ImageFileBytes packed(compressBound(filtered.size()));
  uLongf length = packed.size();
  compress2(packed.data(), &length, filtered.data(), filtered.size(), 6);
  packed.resize(length);
  append_chunk(png, "IDAT", packed);
  append_chunk(png, "IEND", {});
  return png;
}

struct JpegOptions {
  int quality = 100;
  int colour_step = 1;  ///< 2: one colour for 2 × 2 pixels, as photographs have it
  bool progressive = false;
};

/// `pixels` has 1 (grey), 3 (RGB) or 4 bytes (the inks of CMYK, 255 for none)
/// for each.
inline ImageFileBytes jpeg_bytes(ImageSize size, const ImageFileBytes& pixels,
                                 const JpegOptions& options = {}) {
  const auto components =
      static_cast<int>(static_cast<std::int64_t>(pixels.size()) / size.pixels());
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long length = 0;
  jpeg_mem_dest(&info, &memory, &length);
  info.image_height = static_cast<JDIMENSION>(size.height);
  info.image_width = static_cast<JDIMENSION>(size.width);
  info.input_components = components;
  info.in_color_space = components == 1 ? JCS_GRAYSCALE : components == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  for (int c = 0; c < info.num_components; ++c) {
    const int samples = c == 0 ? options.colour_step : 1;
    info.comp_info[c].h_samp_factor = info.comp_info[c].v_samp_factor = samples;
  }
  if (options.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    const auto row = static_cast<std::size_t>(info.next_scanline * info.image_width) *
                     static_cast<std::size_t>(components);
    JSAMPROW line = const_cast<std::uint8_t*>(pixels.data() + row);
    jpeg_write_scanlines(&info, &line, 1);
  }
  jpeg_finish_compress(&info);
  ImageFileBytes bytes(memory, memory + length);
  jpeg_destroy_compress(&info);
  std::free(memory);
  return bytes;
}

/// A smooth image, pixel by pixel: channel c grows by c + 1 to the right and by 2 downwards.
inline ImageFileBytes smooth_pixels(ImageSize size, int channels) {
  ImageFileBytes pixels;
  for (std::int64_t row = 0; row < size.height; ++row) {
    for (std::int64_t column = 0; column < size.width; ++column) {
      for (int c = 0; c < channels; ++c) {
        pixels.push_back(static_cast<std::uint8_t>(20 + 30 * c + (c + 1) * column + 2 * row));
      }
    }
  }
  return pixels;
}

}  // namespace gossamer
