#include "gossamer/data/augment.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <stdexcept>

namespace gossamer {
namespace {

TEST(Augment, MovesDependOnSeedStepAndSampleAlone) {
  const Augmentation augmentation{.shift = 3, .flip = true};
  std::vector<std::int64_t> samples(2000);
  std::iota(samples.begin(), samples.end(), 0);
  const auto code = [&](std::uint64_t seed, std::int64_t step,
                        const std::vector<std::int64_t>& of) {
    std::vector<std::int64_t> codes;
    for (const Move& m : moves_of(augmentation, seed, step, of)) {
      codes.push_back((m.down + 3) * 100 + (m.right + 3) * 10 + (m.mirrored ? 1 : 0));
    }
    return codes;
  };
  const auto all = code(1, 5, samples);
  EXPECT_EQ(code(1, 5, {7, 3}), (std::vector<std::int64_t>{all[7], all[3]}));
  EXPECT_NE(code(2, 5, samples), all);
  EXPECT_NE(code(1, 6, samples), all);
  // Each of the 7 · 7 · 2 moves comes about 20 times.
  std::map<std::int64_t, int> times;
  for (const std::int64_t one : all) ++times[one];
  EXPECT_EQ(times.size(), 98u);
  for (const auto& [move, count] : times) EXPECT_LT(count, 60) << move;
}

TEST(Augment, NothingIsDrawnWithoutNeedAndNonsenseIsRefused) {
  EXPECT_TRUE(moves_of({}, 1, 0, {1, 2}).empty());
  for (const Move& move : moves_of({.flip = true}, 1, 0, {1, 2, 3})) {
    EXPECT_EQ(move.down, 0);
    EXPECT_EQ(move.right, 0);
  }
  EXPECT_NO_THROW(check_augmentation({.shift = 27}, 28, 28));
  EXPECT_THROW(check_augmentation({.shift = 28}, 28, 30), std::invalid_argument);
  EXPECT_THROW(check_augmentation({.shift = -1}, 28, 28), std::invalid_argument);
}

TEST(Augment, ACropLeavesTheOtherChangesAsTheyAre) {
  const std::vector<std::int64_t> samples{5, 6, 7, 8};
  const auto plain = moves_of({.shift = 2, .flip = true}, 1, 3, samples);
  const auto cropped = moves_of({.shift = 2, .flip = true, .crop = true}, 1, 3, samples);
  for (std::size_t k = 0; k < samples.size(); ++k) {
    EXPECT_EQ(cropped[k].down, plain[k].down);
    EXPECT_EQ(cropped[k].right, plain[k].right);
    EXPECT_EQ(cropped[k].mirrored, plain[k].mirrored);
    EXPECT_TRUE(cropped[k].crop.has_value());
    EXPECT_FALSE(plain[k].crop.has_value());
  }
  EXPECT_NE(cropped[0].crop, cropped[1].crop);
  EXPECT_EQ(moves_of({.crop = true}, 1, 3, {6})[0].crop,
            moves_of({.crop = true}, 1, 3, {6})[0].crop);
}

TEST(Augment, BoxesHaveTheUsualAreasAndRatiosAndLieInTheImage) {
  const ImageSize image{.height = 300, .width = 400};
  constexpr int kBoxes = 4000;
  double area = 0;
  int wide = 0;
  double left = 0;
  for (int key = 0; key < kBoxes; ++key) {
    const ImageBox box = random_box(static_cast<std::uint64_t>(key), image);
    ASSERT_GE(box.top, 0);
    ASSERT_GE(box.left, 0);
    ASSERT_LE(box.top + box.size.height, image.height);
    ASSERT_LE(box.left + box.size.width, image.width);
    const double share =
        static_cast<double>(box.size.pixels()) / static_cast<double>(image.pixels());
    const double ratio = static_cast<double>(box.size.width) / static_cast<double>(box.size.height);
    ASSERT_GT(share, 0.079);
    ASSERT_GT(ratio, 0.74);
    ASSERT_LT(ratio, 1.35);
    area += share / kBoxes;
    wide += ratio > 1 ? 1 : 0;
    left += static_cast<double>(box.left) / static_cast<double>(image.width - box.size.width + 1);
  }
  // Of 300 × 400 pixels a box of ratio r fits where its share is at most 3r/4. The integrals over
  // log r of ((3r/4)² − 0.08²) / 2 and of 3r/4 − 0.08 are 0.1691 and 0.3915.
  EXPECT_NEAR(area, 0.4319, 0.01);
  EXPECT_GT(wide, kBoxes / 2);
  EXPECT_NEAR(left / kBoxes, 0.5, 0.03);
}

TEST(Augment, WhereNoBoxFitsTheMiddleIsTaken) {
  const ImageBox box = random_box(1, {.height = 10, .width = 1000});
  EXPECT_EQ(box.size, (ImageSize{.height = 10, .width = 13}));
  EXPECT_EQ(box.left, 493);
  EXPECT_EQ(random_box(1, {.height = 1, .width = 1}).size, (ImageSize{1, 1}));
}

}  // namespace
}  // namespace gossamer
