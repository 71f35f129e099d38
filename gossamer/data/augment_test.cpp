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

}  // namespace
}  // namespace gossamer
