#include "gossamer/data/sharding.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace gossamer {
namespace {

TEST(Sharding, PermutedIsAPermutationForEverySize) {
  for (std::uint64_t count = 1; count <= 70; ++count) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < count; ++i) seen.insert(permuted(i, count, 5));
    EXPECT_EQ(seen.size(), count);
    EXPECT_EQ(*seen.rbegin(), count - 1);
  }
}

TEST(Sharding, PermutedMixesAndDependsOnTheKey) {
  // Of n! permutations few leave many places fixed: the expected number of fixed points is one.
  int fixed = 0;
  int equal = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    fixed += permuted(i, 1000, 7) == i;
    equal += permuted(i, 1000, 7) == permuted(i, 1000, 8);
  }
  EXPECT_LT(fixed, 10);
  EXPECT_LT(equal, 10);
}

TEST(Sharding, ImpossibleShardsAreRefused) {
  EXPECT_THROW(local_range(8, {.worker = 4, .workers = 4}), std::invalid_argument);
  EXPECT_THROW(local_range(8, {.worker = -1, .workers = 4}), std::invalid_argument);
  EXPECT_THROW(local_range(3, {.worker = 0, .workers = 4}), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
