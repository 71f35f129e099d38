#pragma once
/// Random changes to training images that leave their class as it is: pure functions of seed, step
/// and sample, so that a run repeats bit for bit and no two epochs see the same image.

#include <cstdint>
#include <vector>

namespace gossamer {

struct Augmentation {
  /// Moves by up to so many pixels, down or up and right or left; black comes in. 0: none.
  std::int64_t shift = 0;
  /// Mirrors left and right, half of the time.
  bool flip = false;
};

/// Throws std::invalid_argument when `shift` is negative or moves an image of these sizes out of
/// sight.
void check_augmentation(const Augmentation& augmentation, std::int64_t height, std::int64_t width);

/// What happens to one image: it is mirrored, then moved.
struct Move {
  std::int64_t down = 0;
  std::int64_t right = 0;
  bool mirrored = false;
};

/// One per sample, or none at all where nothing is to change.
std::vector<Move> moves_of(const Augmentation& augmentation, std::uint64_t seed, std::int64_t step,
                           const std::vector<std::int64_t>& samples);

}  // namespace gossamer
