#include "gossamer/data/decode_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "gossamer/data/data_fixture.h"
#include "gossamer/data/image_fixture.h"

namespace gossamer {
namespace {

constexpr ImageSize kSmall{.height = 2, .width = 3};
constexpr ImageSize kSize{.height = 24, .width = 30};

Image decoded(const Bytes& file, std::int64_t channels) {
  return decode_image("'file'", file, channels);
}

/// Channel by channel.
Bytes separated(const Bytes& pixels, std::size_t channels) {
  Bytes planes;
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t i = c; i < pixels.size(); i += channels) planes.push_back(pixels[i]);
  }
  return planes;
}

Bytes thrice(const Bytes& plane) {
  Bytes planes;
  for (int c = 0; c < 3; ++c) planes.insert(planes.end(), plane.begin(), plane.end());
  return planes;
}

void expect_near(const Bytes& got, const Bytes& expected, int most) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::abs(int{got[i]} - int{expected[i]}), most) << i;
  }
}

TEST(DecodeImage, PngFilesOfEachKindHaveTheirPixels) {
  const Bytes colours{255, 0, 1, 9, 8, 7, 0, 0, 0, 1, 2, 3, 4, 5, 6, 250, 251, 252};
  const Image image = decoded(png_bytes(kSmall, colours), 3);
  EXPECT_EQ(image.size, kSmall);
  EXPECT_EQ(image.pixels, separated(colours, 3));
  const Bytes greys{0, 10, 20, 200, 255, 1};
  const Bytes grey = png_bytes(kSmall, greys, {.kind = PngKind::grey});
  EXPECT_EQ(decoded(grey, 1).pixels, greys);
  EXPECT_EQ(decoded(grey, 3).pixels, thrice(greys));
  const Bytes bits =
      png_bytes(kSmall, {0b10100000, 0b01100000}, {.kind = PngKind::grey, .bits = 1});
  EXPECT_EQ(decoded(bits, 1).pixels, (Bytes{255, 0, 255, 0, 255, 255}));
  const Bytes chosen = png_bytes(kSmall, {0, 1, 0, 1, 1, 1},
                                 {.kind = PngKind::palette, .palette = {1, 2, 3, 40, 50, 60}});
  EXPECT_EQ(decoded(chosen, 3).pixels,
            (Bytes{1, 40, 1, 40, 40, 40, 2, 50, 2, 50, 50, 50, 3, 60, 3, 60, 60, 60}));
}

TEST(DecodeImage, JpegFilesOfEachKindAreNearTheirPixels) {
  const Bytes colours = smooth_pixels(kSize, 3);
  for (const bool progressive : {false, true}) {
    const Image image = decoded(jpeg_bytes(kSize, colours, {.progressive = progressive}), 3);
    EXPECT_EQ(image.size, kSize);
    expect_near(image.pixels, separated(colours, 3), 3);
  }
  const Bytes greys = smooth_pixels(kSize, 1);
  expect_near(decoded(jpeg_bytes(kSize, greys), 1).pixels, greys, 2);
  expect_near(decoded(jpeg_bytes(kSize, greys), 3).pixels, thrice(greys), 2);
}

TEST(DecodeImage, InksAreMixedToColours) {
  const Bytes inks = smooth_pixels(kSize, 4);
  Bytes colours;
  for (std::size_t i = 0; i < inks.size(); i += 4) {
    for (std::size_t c = 0; c < 3; ++c) {
      colours.push_back(static_cast<std::uint8_t>(inks[i + c] * inks[i + 3] / 255.0 + 0.5));
    }
  }
  expect_near(decoded(jpeg_bytes(kSize, inks), 3).pixels, separated(colours, 3), 4);
}

/// With other sizes at the place where the first frame of a JPEG file has them.
Bytes resized_jpeg(Bytes file, std::uint8_t high_byte) {
  constexpr std::uint8_t kFrame[] = {0xff, 0xc0};
  const auto frame = std::ranges::search(file, kFrame).begin();
  frame[5] = frame[7] = high_byte;
  return file;
}

TEST(DecodeImage, WhatCannotBeReadIsNamedWithItsFault) {
  const Bytes png = png_bytes(kSize, smooth_pixels(kSize, 3));
  const Bytes jpeg = jpeg_bytes(kSize, smooth_pixels(kSize, 3));
  const auto half = [](const Bytes& file) {
    return Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(file.size() / 2));
  };
  Bytes altered = png;
  altered[altered.size() / 2] ^= 1;
  const Bytes transparent =
      png_bytes(kSmall, {0, 1, 0, 1, 1, 1},
                {.kind = PngKind::palette, .palette = {1, 2, 3, 40, 50, 60}, .alpha = {0}});
  const std::pair<Bytes, std::string> bad[] = {
      {{}, "an empty file"},
      {{'h', 'e', 'l', 'l', 'o'}, "something else"},
      {half(png), "a damaged PNG file"},
      {altered, "a damaged PNG file"},
      {half(jpeg), "Premature end of JPEG file"},
      {Bytes(jpeg.begin(), jpeg.begin() + 30), "Premature end of JPEG file"},
      {png_bytes({100'000, 100'000}, {}, {.kind = PngKind::grey, .bits = 1}), "100000 x 100000"},
      {resized_jpeg(jpeg, 0xf0), "pixels, more than"},
      {png_bytes(kSmall, Bytes(12), {.kind = PngKind::grey, .bits = 16}), "16 bits"},
      {png_bytes(kSmall, Bytes(36), {.bits = 16}), "16 bits"},
      {png_bytes(kSmall, Bytes(24), {.kind = PngKind::rgb_alpha}), "alpha"},
      {png_bytes(kSmall, Bytes(12), {.kind = PngKind::grey_alpha}), "alpha"},
      {transparent, "alpha"}};
  for (const auto& [file, what] : bad) {
    const std::string message = io_error([&] { decoded(file, 3); });
    expect_names(message, "'file'", what);
    EXPECT_NE(message.find("; "), std::string::npos) << "no remedy: " << message;
  }
  expect_names(io_error([&] { decoded(png, 1); }), "'file'", "colour in a set of grey images");
}

TEST_F(DataFiles, HeadersAreReadBehindCommentsAndWhateverTheNameIs) {
  const Bytes jpeg = jpeg_bytes(kSize, smooth_pixels(kSize, 1));
  Bytes commented(jpeg.begin(), jpeg.begin() + 2);
  for (int k = 0; k < 3; ++k) {
    commented.insert(commented.end(), {0xff, 0xfe, 0xff, 0xff});
    commented.insert(commented.end(), 0xfffd, 'x');
  }
  commented.insert(commented.end(), jpeg.begin() + 2, jpeg.end());
  const ImageHeader header = read_image_header(write("long.jpg", commented));
  EXPECT_EQ(header.size, kSize);
  EXPECT_EQ(header.channels, 1);
  EXPECT_EQ(read_image_header(write("png.jpg", png_bytes(kSize, smooth_pixels(kSize, 3)))).channels,
            3);
  expect_names(io_error([&] { read_image_header(write("no.png", {'n', 'o'})); }), "no.png'",
               "something else");
}

}  // namespace
}  // namespace gossamer
