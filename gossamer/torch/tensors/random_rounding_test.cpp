// Rounding at random against the numbers of the two formats, and its mean against the number.
#include "gossamer/torch/tensors/random_rounding.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace gossamer {
namespace {

template <class T>
class RandomRounding : public testing::Test {};
using LowTypes = testing::Types<c10::BFloat16, c10::Half>;
TYPED_TEST_SUITE(RandomRounding, LowTypes);

template <class T>
std::vector<T> rounded_to(const std::vector<float>& x, std::uint64_t key) {
  std::vector<T> to(x.size());
  round_at_random<T>(x, std::span<T>(to), key);
  return to;
}

TYPED_TEST(RandomRounding, KeepsWhatTheTypeHasAndGivesItsNeighboursElse) {
  for (std::uint32_t pattern = 0; pattern < 0x10000U; ++pattern) {
    const auto value = std::bit_cast<TypeParam>(static_cast<std::uint16_t>(pattern));
    const float exact = static_cast<float>(value);
    const TypeParam kept = rounded_to<TypeParam>({exact}, pattern)[0];
    if (std::isnan(exact)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(kept))) << pattern;
      continue;
    }
    EXPECT_EQ(std::bit_cast<std::uint16_t>(kept), pattern);
    const auto above = std::bit_cast<TypeParam>(static_cast<std::uint16_t>(pattern + 1));
    const float next = static_cast<float>(above);
    if (!std::isfinite(exact) || !std::isfinite(next)) continue;
    const float between = exact + (next - exact) * 0.375F;
    const float got = static_cast<float>(rounded_to<TypeParam>({between}, pattern)[0]);
    EXPECT_TRUE(got == exact || got == next) << pattern << " " << got;
  }
}

TYPED_TEST(RandomRounding, WhatIsFiniteStaysFinite) {
  using Floats = std::numeric_limits<float>;
  const float largest = static_cast<float>(std::numeric_limits<TypeParam>::max());
  const float infinity = Floats::infinity();
  const std::vector<float> x{
      Floats::max(),       Floats::lowest(), infinity, -infinity, std::bit_cast<float>(0x7F800001U),
      -Floats::quiet_NaN()};
  for (std::uint64_t key = 0; key < 64; ++key) {
    const auto to = rounded_to<TypeParam>(x, key);
    EXPECT_EQ(static_cast<float>(to[0]), largest);
    EXPECT_EQ(static_cast<float>(to[1]), -largest);
    EXPECT_EQ(static_cast<float>(to[2]), infinity);
    EXPECT_EQ(static_cast<float>(to[3]), -infinity);
    EXPECT_TRUE(std::isnan(static_cast<float>(to[4])));
    EXPECT_TRUE(std::isnan(static_cast<float>(to[5])));
  }
}

/// Up with probability p = (x − lower) / (upper − lower): a mean of n draws is within five times
/// √(p (1 − p) / n) of it.
TYPED_TEST(RandomRounding, IsUnbiasedOverManyKeys) {
  constexpr int kDraws = 20000;
  // 1.5e-6 is a subnormal number of Half.
  const std::vector<float> x{1.0009766F, -0.3337F, 3.14159F, 1e-3F, 1.53e-6F, 60001.7F};
  std::vector<double> sums(x.size());
  for (int draw = 0; draw < kDraws; ++draw) {
    const auto to = rounded_to<TypeParam>(x, rounding_key("weight", draw % 4, draw / 4));
    for (std::size_t i = 0; i < x.size(); ++i) sums[i] += static_cast<float>(to[i]);
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto nearest = static_cast<TypeParam>(x[i]);
    const auto bits = std::bit_cast<std::uint16_t>(nearest);
    const bool is_below = std::fabs(static_cast<float>(nearest)) < std::fabs(x[i]);
    const auto other = static_cast<std::uint16_t>(is_below ? bits + 1 : bits - 1);
    const double a = static_cast<float>(nearest);
    const double width = static_cast<float>(std::bit_cast<TypeParam>(other)) - a;
    const double p = (x[i] - a) / width;
    const double found = (sums[i] / kDraws - a) / width;
    EXPECT_NEAR(found, p, 5 * std::sqrt(p * (1 - p) / kDraws) + 1e-4) << x[i];
  }
}

/// A half of a tensor of equal numbers rounds up, and one does not tell what the next one does.
TYPED_TEST(RandomRounding, IsUnbiasedAndIndependentOverTheElements) {
  constexpr std::size_t kCount = 40000;
  const std::vector<float> x(kCount, 1.0F + 1.5F * std::numeric_limits<TypeParam>::epsilon());
  const auto to = rounded_to<TypeParam>(x, rounding_key("weight", 0, 1));
  double ups = 0, equal = 0, blocks = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    ups += to[i] > x[i] ? 1 : 0;
    if (i >= 1) equal += to[i] == to[i - 1] ? 1 : 0;
    if (i >= 4096) blocks += to[i] == to[i - 4096] ? 1 : 0;
  }
  const double near = 5 * 0.5 / std::sqrt(kCount);
  EXPECT_NEAR(ups / kCount, 0.5, near);
  EXPECT_NEAR(equal / (kCount - 1), 0.5, near);
  EXPECT_NEAR(blocks / (kCount - 4096), 0.5, 1.1 * near);
}

TEST(RoundingKey, TellsNamesWorkersAndStepsApart) {
  EXPECT_EQ(rounding_key("a", 1, 2), rounding_key("a", 1, 2));
  EXPECT_NE(rounding_key("a", 1, 2), rounding_key("b", 1, 2));
  EXPECT_NE(rounding_key("a", 1, 2), rounding_key("a", 2, 1));
  EXPECT_NE(rounding_key("a", 1, 2), rounding_key("a", 1, 3));
}

}  // namespace
}  // namespace gossamer
