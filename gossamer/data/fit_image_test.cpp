#include "gossamer/data/fit_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

Image noise(std::int64_t channels, ImageSize size) {
  Image image{.channels = channels, .size = size, .pixels = {}};
  Rng rng(7);
  for (std::int64_t i = 0; i < channels * size.pixels(); ++i) {
    image.pixels.push_back(static_cast<std::uint8_t>(rng.below(256)));
  }
  return image;
}

/// The weight of each of `length` pixels in pixel `k` of `resized`, in double precision.
std::vector<double> weights_of(std::int64_t k, std::int64_t length, std::int64_t resized) {
  const double scale = static_cast<double>(length) / static_cast<double>(resized);
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    const double distance = (static_cast<double>(i) + 0.5) - (static_cast<double>(k) + 0.5) * scale;
    weights.push_back(std::max(0.0, 1 - std::abs(distance) / std::max(1.0, scale)));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Every pixel of the result from every pixel of the box.
double dense(const ImageView& image, const ImageBox& box, ImageSize resized, std::int64_t row,
             std::int64_t column) {
  const std::vector<double> down = weights_of(row, box.size.height, resized.height);
  const std::vector<double> across = weights_of(column, box.size.width, resized.width);
  double sum = 0;
  for (std::size_t r = 0; r < down.size(); ++r) {
    for (std::size_t c = 0; c < across.size(); ++c) {
      const std::int64_t place = (box.top + static_cast<std::int64_t>(r)) * image.size.width +
                                 box.left + static_cast<std::int64_t>(c);
      sum += down[r] * across[c] * image.pixels[place];
    }
  }
  return sum;
}

/// `got` is the part of `resized` that begins at row `top` and column `left`.
void expect_dense(const Image& got, const ImageView& image, const ImageBox& box, ImageSize resized,
                  std::int64_t top, std::int64_t left) {
  const std::uint8_t* pixel = got.pixels.data();
  for (std::int64_t channel = 0; channel < image.channels; ++channel) {
    ImageView plane = image;
    plane.pixels += channel * image.size.pixels();
    for (std::int64_t row = 0; row < got.size.height; ++row) {
      for (std::int64_t column = 0; column < got.size.width; ++column) {
        const double expected = dense(plane, box, resized, top + row, left + column);
        ASSERT_NEAR(*pixel++, expected, 0.501) << channel << ' ' << row << ' ' << column;
      }
    }
  }
}

TEST(FitImage, ABoxIsResizedAsTheDenseSumSays) {
  const Image image = noise(2, {.height = 19, .width = 23});
  const ImageBox boxes[] = {{.top = 0, .left = 0, .size = image.size},
                            {.top = 3, .left = 5, .size = {.height = 11, .width = 17}},
                            {.top = 18, .left = 22, .size = {.height = 1, .width = 1}}};
  const ImageSize sizes[] = {{4, 4}, {11, 17}, {30, 7}, {1, 1}};
  for (const ImageBox& box : boxes) {
    for (const ImageSize& size : sizes) {
      const Image resized = resize_box(image.view(), box, size);
      EXPECT_EQ(resized.channels, 2);
      EXPECT_EQ(resized.size, size);
      expect_dense(resized, image.view(), box, size, 0, 0);
    }
  }
}

TEST(FitImage, TheShorterSideFitsAndTheMiddleIsKept) {
  // 23 · 8/19 = 9.7 columns become 9, and the last of them is left out.
  const Image wide = noise(3, {.height = 19, .width = 23});
  const ImageBox all{.top = 0, .left = 0, .size = wide.size};
  expect_dense(fit_image(wide.view(), {8, 8}), wide.view(), all, {8, 9}, 0, 0);
  // 40 · 6/10 = 24 rows; (24 − 6) / 2 are left out.
  const Image high = noise(1, {.height = 40, .width = 10});
  const ImageBox whole{.top = 0, .left = 0, .size = high.size};
  expect_dense(fit_image(high.view(), {6, 6}), high.view(), whole, {24, 6}, 9, 0);
  expect_dense(fit_image(high.view(), {12, 20}), high.view(), whole, {80, 20}, 34, 0);
}

TEST(FitImage, AnImageOfTheRightSizeStaysAsItIs) {
  const Image image = noise(3, {.height = 28, .width = 28});
  EXPECT_EQ(fit_image(image.view(), image.size).pixels, image.pixels);
  const ImageBox all{.top = 0, .left = 0, .size = image.size};
  EXPECT_EQ(resize_box(image.view(), all, image.size).pixels, image.pixels);
}

}  // namespace
}  // namespace gossamer
