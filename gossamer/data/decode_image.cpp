#include "gossamer/data/decode_image.h"

#include <algorithm>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/data/image_codec.h"
#include "gossamer/data/jpeg.h"
#include "gossamer/data/png.h"
#include "gossamer/data/read_bytes.h"

namespace gossamer {
namespace {

constexpr ImageCodec kCodecs[] = {
    {"JPEG", "\xff\xd8\xff", jpeg_header, decode_jpeg},
    {"PNG", "\x89PNG\r\n\x1a\n", png_header, decode_png},
};

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 28;

std::span<const std::uint8_t> bytes_of(const FileBytes& content) {
  return {reinterpret_cast<const std::uint8_t*>(content.memory.get()), content.size};
}

bool begins_with(std::span<const std::uint8_t> bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

const ImageCodec& codec_of(const ImageBytes& file) {
  for (const ImageCodec& codec : kCodecs) {
    if (begins_with(file.bytes, codec.beginning)) return codec;
  }
  refuse_image(file.name, file.bytes.empty() ? "an empty file" : "something else",
               "convert it, or take it out of the folder");
}

ImageHeader checked_header(const ImageCodec& codec, const ImageBytes& file) {
  const ImageHeader header = codec.header(file);
  if (header.size.height <= kMostPixels / std::max<std::int64_t>(header.size.width, 1)) {
    return header;
  }
  refuse_image(file.name,
               std::to_string(header.size.width) + " x " + std::to_string(header.size.height) +
                   " pixels, more than " + std::to_string(kMostPixels),
               "make it smaller, or take it out of the folder");
}

/// From pixel by pixel to channel by channel.
Image by_channels(std::span<const std::uint8_t> pixels, const ImageHeader& header,
                  std::int64_t channels) {
  Image image{.channels = channels, .size = header.size, .pixels = {}};
  const auto area = static_cast<std::size_t>(header.size.pixels());
  const auto from = static_cast<std::size_t>(header.channels);
  image.pixels.resize(static_cast<std::size_t>(channels) * area);
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    std::uint8_t* const to = image.pixels.data() + c * area;
    const std::uint8_t* const first = pixels.data() + c % from;
    for (std::size_t i = 0; i < area; ++i) to[i] = first[i * from];
  }
  return image;
}

}  // namespace

void refuse_image(const std::string& name, const std::string& got, const std::string& remedy) {
  fail_io({.place = "images",
           .what = name + " must be a JPEG or PNG file of 8 bits per channel without alpha",
           .got = got,
           .remedy = remedy});
}

ImageHeader read_image_header(const std::filesystem::path& path) {
  const FileBytes content = read_file(path, kMostBytes);
  const ImageBytes file{quoted(path), bytes_of(content)};
  return checked_header(codec_of(file), file);
}

Image decode_image(const std::filesystem::path& path, std::int64_t channels) {
  const FileBytes content = read_file(path, kMostBytes);
  return decode_image(quoted(path), bytes_of(content), channels);
}

Image decode_image(const std::string& name, std::span<const std::uint8_t> bytes,
                   std::int64_t channels) {
  const ImageBytes file{name, bytes};
  const ImageCodec& codec = codec_of(file);
  const ImageHeader header = checked_header(codec, file);
  if (header.channels > channels) {
    refuse_image(name, "colour in a set of grey images", "convert it to grey, or begin a new run");
  }
  return by_channels(codec.decode(file, header), header, channels);
}

}  // namespace gossamer
