#pragma once
/// An image in memory: bytes, one channel after the other, each row by row.

#include <cstdint>
#include <vector>

namespace gossamer {

struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;

  std::int64_t pixels() const { return height * width; }
  bool operator==(const ImageSize&) const = default;
};

/// A part of an image.
struct ImageBox {
  std::int64_t top = 0;
  std::int64_t left = 0;
  ImageSize size;
};

/// An image that another owns.
struct ImageView {
  const std::uint8_t* pixels = nullptr;
  std::int64_t channels = 1;
  ImageSize size;
};

struct Image {
  std::int64_t channels = 1;
  ImageSize size;
  std::vector<std::uint8_t> pixels;

  ImageView view() const { return {.pixels = pixels.data(), .channels = channels, .size = size}; }
};

}  // namespace gossamer
