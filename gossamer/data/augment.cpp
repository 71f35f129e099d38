#include "gossamer/data/augment.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

/// Keeps these draws apart from those that shuffle the samples.
constexpr std::uint64_t kPurpose = 0x6175676d656e74;  // "augment"

Move draw(const Augmentation& augmentation, Rng rng) {
  const auto places = static_cast<std::uint64_t>(2 * augmentation.shift + 1);
  Move move;
  move.down = static_cast<std::int64_t>(rng.below(places)) - augmentation.shift;
  move.right = static_cast<std::int64_t>(rng.below(places)) - augmentation.shift;
  move.mirrored = augmentation.flip && rng.below(2) == 1;
  if (augmentation.crop) move.crop = rng.next();
  return move;
}

constexpr double kLeastArea = 0.08;
constexpr double kMostRatio = 4. / 3;
constexpr int kDraws = 10;

ImageBox middle_box(ImageSize image) {
  ImageSize size = image;
  const auto limit = [](std::int64_t other) {
    return std::max<std::int64_t>(1, std::lround(static_cast<double>(other) * kMostRatio));
  };
  size.width = std::min(size.width, limit(image.height));
  size.height = std::min(size.height, limit(image.width));
  return {.top = (image.height - size.height) / 2,
          .left = (image.width - size.width) / 2,
          .size = size};
}

}  // namespace

void check_augmentation(const Augmentation& augmentation, std::int64_t height, std::int64_t width) {
  if (augmentation.shift >= 0 && augmentation.shift < std::min(height, width)) return;
  fail_argument({.place = "augment",
                 .what = "shift must be at least 0 and less than the sides of the images, " +
                         std::to_string(height) + " and " + std::to_string(width),
                 .got = std::to_string(augmentation.shift),
                 .remedy = "2 is usual for digits, 4 for CIFAR"});
}

std::vector<Move> moves_of(const Augmentation& augmentation, std::uint64_t seed, std::int64_t step,
                           const std::vector<std::int64_t>& samples) {
  if (augmentation.shift == 0 && !augmentation.flip && !augmentation.crop) return {};
  const std::uint64_t key = mix_bits(mix_bits(seed, kPurpose), static_cast<std::uint64_t>(step));
  std::vector<Move> moves;
  moves.reserve(samples.size());
  for (const std::int64_t sample : samples) {
    moves.push_back(draw(augmentation, Rng(key, static_cast<std::uint64_t>(sample))));
  }
  return moves;
}

ImageBox random_box(std::uint64_t key, ImageSize image) {
  Rng rng(key, kPurpose);
  const auto place = [&](std::int64_t room) {
    return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(room + 1)));
  };
  for (int draw = 0; draw < kDraws; ++draw) {
    const double share = kLeastArea + (1 - kLeastArea) * rng.uniform();
    const double area = share * static_cast<double>(image.pixels());
    const double ratio = std::exp(std::log(kMostRatio) * (2 * rng.uniform() - 1));
    const ImageSize size{.height = std::lround(std::sqrt(area / ratio)),
                         .width = std::lround(std::sqrt(area * ratio))};
    const bool fits = size.height > 0 && size.width > 0 && size.height <= image.height &&
                      size.width <= image.width;
    if (!fits) continue;
    const std::int64_t top = place(image.height - size.height);
    return {.top = top, .left = place(image.width - size.width), .size = size};
  }
  return middle_box(image);
}

}  // namespace gossamer
