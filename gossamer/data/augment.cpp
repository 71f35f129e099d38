#include "gossamer/data/augment.h"

#include <algorithm>
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
  return move;
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
  if (augmentation.shift == 0 && !augmentation.flip) return {};
  const std::uint64_t key = mix_bits(mix_bits(seed, kPurpose), static_cast<std::uint64_t>(step));
  std::vector<Move> moves;
  moves.reserve(samples.size());
  for (const std::int64_t sample : samples) {
    moves.push_back(draw(augmentation, Rng(key, static_cast<std::uint64_t>(sample))));
  }
  return moves;
}

}  // namespace gossamer
