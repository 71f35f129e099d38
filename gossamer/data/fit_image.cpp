#include "gossamer/data/fit_image.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace gossamer {
namespace {

/// `length` pixels from `begin` become `resized`, of which `count` are wanted, from `first`.
struct Axis {
  std::int64_t begin = 0;
  std::int64_t length = 0;
  std::int64_t resized = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// The pixels that one of the result is made of, and their weights.
struct Taps {
  std::int64_t begin = 0;
  std::vector<float> weights;

  std::int64_t end() const { return begin + static_cast<std::int64_t>(weights.size()); }
};

Taps taps_of(const Axis& axis, std::int64_t pixel) {
  const double scale = static_cast<double>(axis.length) / static_cast<double>(axis.resized);
  const double reach = std::max(1.0, scale);
  const double centre = (static_cast<double>(axis.first + pixel) + 0.5) * scale;
  const auto begin = std::max<std::int64_t>(0, std::llround(std::floor(centre - reach)));
  const auto end = std::min(axis.length, static_cast<std::int64_t>(std::ceil(centre + reach)));
  std::vector<double> weights;
  double sum = 0;
  for (std::int64_t k = begin; k < end; ++k) {
    const double distance = std::abs(static_cast<double>(k) + 0.5 - centre);
    weights.push_back(std::max(0.0, 1 - distance / reach));
    sum += weights.back();
  }
  Taps taps{.begin = axis.begin + begin, .weights = {}};
  for (const double weight : weights) taps.weights.push_back(static_cast<float>(weight / sum));
  return taps;
}

std::vector<Taps> taps_of(const Axis& axis) {
  std::vector<Taps> taps;
  for (std::int64_t pixel = 0; pixel < axis.count; ++pixel) taps.push_back(taps_of(axis, pixel));
  return taps;
}

/// The mean of rows, between two columns.
void mix_rows(const std::uint8_t* plane, std::int64_t width, const Taps& rows, std::int64_t left,
              std::vector<float>& mixed) {
  std::ranges::fill(mixed, 0.0F);
  const std::uint8_t* row = plane + rows.begin * width + left;
  for (const float weight : rows.weights) {
    for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] += weight * static_cast<float>(row[i]);
    row += width;
  }
}

Image resize(const ImageView& image, const Axis& rows, const Axis& columns) {
  const std::vector<Taps> down = taps_of(rows);
  const std::vector<Taps> across = taps_of(columns);
  const std::int64_t left = across.front().begin;
  std::vector<float> mixed(static_cast<std::size_t>(across.back().end() - left));
  Image result{.channels = image.channels,
               .size = {.height = rows.count, .width = columns.count},
               .pixels = {}};
  result.pixels.resize(static_cast<std::size_t>(image.channels * result.size.pixels()));
  std::uint8_t* to = result.pixels.data();
  for (std::int64_t channel = 0; channel < image.channels; ++channel) {
    const std::uint8_t* const plane = image.pixels + channel * image.size.pixels();
    for (const Taps& taps : down) {
      mix_rows(plane, image.size.width, taps, left, mixed);
      for (const Taps& pixel : across) {
        const float* from = mixed.data() + (pixel.begin - left);
        float sum = 0;
        for (const float weight : pixel.weights) sum += weight * *from++;
        *to++ = static_cast<std::uint8_t>(sum + 0.5F);
      }
    }
  }
  return result;
}

/// The middle of a side that is resized by the same factor as the shorter one.
Axis middle(std::int64_t length, std::int64_t wanted, double factor) {
  const auto scaled = static_cast<std::int64_t>(static_cast<double>(length) * factor + 1e-9);
  const std::int64_t resized = std::max(wanted, scaled);
  return {.begin = 0,
          .length = length,
          .resized = resized,
          .first = std::lrint(static_cast<double>(resized - wanted) / 2),
          .count = wanted};
}

}  // namespace

Image fit_image(const ImageView& image, ImageSize size) {
  const auto ratio = [](std::int64_t to, std::int64_t from) {
    return static_cast<double>(to) / static_cast<double>(from);
  };
  const double factor =
      std::max(ratio(size.height, image.size.height), ratio(size.width, image.size.width));
  return resize(image, middle(image.size.height, size.height, factor),
                middle(image.size.width, size.width, factor));
}

Image resize_box(const ImageView& image, const ImageBox& box, ImageSize size) {
  return resize(
      image,
      {.begin = box.top, .length = box.size.height, .resized = size.height, .count = size.height},
      {.begin = box.left, .length = box.size.width, .resized = size.width, .count = size.width});
}

}  // namespace gossamer
