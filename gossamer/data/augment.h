#pragma once
/// Random changes to training images that leave their class as it is: pure functions of seed, step
/// and sample, so that a run repeats bit for bit and no two epochs see the same image.

#include <cstdint>
#include <optional>
#include <vector>

#include "gossamer/data/image.h"

namespace gossamer {

struct Augmentation {
  /// Moves by up to so many pixels, down or up and right or left; black comes in. 0: none.
  std::int64_t shift = 0;
  /// Mirrors left and right, half of the time.
  bool flip = false;
  /// Takes a random part, see random_box(), and resizes it to the size of the images.
  bool crop = false;
};

/// Throws std::invalid_argument when `shift` is negative or moves an image of these sizes out of
/// sight.
void check_augmentation(const Augmentation& augmentation, std::int64_t height, std::int64_t width);

/// What happens to one image: it is cropped, mirrored, then moved.
struct Move {
  std::int64_t down = 0;
  std::int64_t right = 0;
  bool mirrored = false;
  std::optional<std::uint64_t> crop = {};  ///< of which random_box() makes the part
};

/// A part of an image that has 0.08 to 1 of its area and 3/4 to 4/3 as width over height, uniform
/// in area and in the logarithm of the ratio (Szegedy et al. 2015, with the numbers of
/// torchvision's RandomResizedCrop). After ten draws that do not fit: the largest of these ratios
/// in the middle.
ImageBox random_box(std::uint64_t key, ImageSize image);

/// One per sample, or none at all where nothing is to change.
std::vector<Move> moves_of(const Augmentation& augmentation, std::uint64_t seed, std::int64_t step,
                           const std::vector<std::int64_t>& samples);

}  // namespace gossamer
