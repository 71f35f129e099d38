// Rounding at random against the numbers of the two formats, and its mean against the number.
#include "gossamer/kernels/random_rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "gossamer/base/rng.h"
#include "gossamer/kernels/kernel_table.h"

namespace gossamer {
namespace {

using Codes = std::vector<std::uint16_t>;

float value_of(HalfFormat format, std::uint16_t code) {
  if (format == HalfFormat::bf16) return std::bit_cast<float>(std::uint32_t{code} << 16);
  const int exponent = (code >> 10) & 31;
  const int digits = code & 1023;
  float size = std::ldexp(static_cast<float>(digits + (exponent > 0 ? 1024 : 0)),
                          std::max(exponent, 1) - 25);
  if (exponent == 31) size = digits == 0 ? INFINITY : NAN;
  return (code & 0x8000) != 0 ? -size : size;
}

Codes rounded_to(HalfFormat format, const std::vector<float>& x, std::uint64_t key) {
  Codes to(x.size());
  round_at_random(format, x, to, key);
  return to;
}

class RandomRounding : public testing::TestWithParam<HalfFormat> {};
INSTANTIATE_TEST_SUITE_P(Formats, RandomRounding,
                         testing::Values(HalfFormat::bf16, HalfFormat::fp16));

TEST_P(RandomRounding, KeepsWhatTheFormatHasAndGivesItsNeighboursElse) {
  for (std::uint32_t wide = 0; wide < 0x10000U; ++wide) {
    const auto code = static_cast<std::uint16_t>(wide);
    const float exact = value_of(GetParam(), code);
    const std::uint16_t kept = rounded_to(GetParam(), {exact}, wide)[0];
    if (std::isnan(exact)) {
      EXPECT_TRUE(std::isnan(value_of(GetParam(), kept))) << code;
      continue;
    }
    EXPECT_EQ(kept, code);
    const auto next = static_cast<std::uint16_t>(code + 1);
    const float above = value_of(GetParam(), next);
    if (!std::isfinite(exact) || !std::isfinite(above)) continue;
    const std::uint16_t got = rounded_to(GetParam(), {exact + (above - exact) * 0.375F}, wide)[0];
    EXPECT_TRUE(got == code || got == next) << code << " " << got;
  }
}

TEST_P(RandomRounding, WhatIsFiniteStaysFinite) {
  using Floats = std::numeric_limits<float>;
  const std::vector<float> x{Floats::max(),
                             Floats::lowest(),
                             Floats::infinity(),
                             -Floats::infinity(),
                             std::bit_cast<float>(0x7F800001U),
                             -Floats::quiet_NaN()};
  const std::uint16_t infinity = GetParam() == HalfFormat::bf16 ? 0x7F80 : 0x7C00;
  for (std::uint64_t key = 0; key < 64; ++key) {
    const Codes to = rounded_to(GetParam(), x, key);
    EXPECT_EQ(to[0], infinity - 1);
    EXPECT_EQ(to[1], 0x8000 + infinity - 1);
    EXPECT_EQ(to[2], infinity);
    EXPECT_EQ(to[3], 0x8000 + infinity);
    EXPECT_TRUE(std::isnan(value_of(GetParam(), to[4])));
    EXPECT_TRUE(std::isnan(value_of(GetParam(), to[5])));
  }
}

/// Up with probability p = (x − lower) / (upper − lower): a mean of n draws is within five times
/// √(p (1 − p) / n) of it.
TEST_P(RandomRounding, IsUnbiasedOverManyKeys) {
  constexpr int kDraws = 20000;
  // 1.53e-6 is a subnormal number of fp16.
  const std::vector<float> x{1.0009766F, -0.3337F, 3.14159F, 1e-3F, 1.53e-6F, 60001.7F};
  std::vector<double> sums(x.size());
  std::vector<std::uint16_t> lower(x.size(), 0xFFFF);
  for (int draw = 0; draw < kDraws; ++draw) {
    const Codes to = rounded_to(GetParam(), x, mix_bits(7, static_cast<std::uint64_t>(draw)));
    for (std::size_t i = 0; i < x.size(); ++i) {
      sums[i] += value_of(GetParam(), to[i]);
      lower[i] = std::min(lower[i], to[i]);  // nearer to 0
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = value_of(GetParam(), lower[i]);
    const double width = value_of(GetParam(), static_cast<std::uint16_t>(lower[i] + 1)) - a;
    const double p = (x[i] - a) / width;
    EXPECT_NEAR((sums[i] / kDraws - a) / width, p, 5 * std::sqrt(p * (1 - p) / kDraws) + 2e-4)
        << x[i];
  }
}

/// A half of equal numbers rounds up, and one does not tell what another one does.
TEST_P(RandomRounding, IsUnbiasedAndIndependentOverTheElements) {
  constexpr std::size_t kCount = 40000;
  const float place = GetParam() == HalfFormat::bf16 ? 0x1p-7F : 0x1p-10F;
  const Codes to = rounded_to(GetParam(), std::vector<float>(kCount, 1 + 0.5F * place), 3);
  for (const std::size_t apart : {1u, 2u, 8u, 16u, 4096u}) {
    double equal = 0;
    for (std::size_t i = apart; i < kCount; ++i) equal += to[i] == to[i - apart] ? 1 : 0;
    EXPECT_NEAR(equal / static_cast<double>(kCount - apart), 0.5, 0.015) << apart;
  }
  double ups = 0;
  for (const std::uint16_t code : to) ups += value_of(GetParam(), code) > 1 ? 1 : 0;
  EXPECT_NEAR(ups / kCount, 0.5, 0.0125);  // five standard deviations
}

TEST_P(RandomRounding, AllInstructionSetsGiveTheSameCodes) {
  Rng rng(5);
  for (const Isa isa : {Isa::avx2, Isa::avx512}) {
    if (!supports(isa)) continue;
    const auto in = [&](Isa which) {
      const RoundingKernels& kernels = rounding_kernels(which);
      return GetParam() == HalfFormat::bf16 ? kernels.bf16 : kernels.fp16;
    };
    for (std::size_t count = 0; count < 140; ++count) {
      std::vector<float> x(count + 3);
      for (float& each : x) each = std::bit_cast<float>(static_cast<std::uint32_t>(rng.next()));
      for (std::size_t i = 0; i < count; i += 3) x[i] = static_cast<float>(rng.normal() * 1e-5);
      Codes expected(count + 8, 0xA5A5);
      Codes got = expected;
      const auto job = [&](Codes& to, std::size_t shift) {
        return Rounding{x.data() + shift, to.data() + 2 + shift, count, 11, 12};
      };
      for (const std::size_t shift : {0u, 1u, 3u}) {
        in(Isa::ref)(job(expected, shift));
        in(isa)(job(got, shift));
        ASSERT_EQ(got, expected) << name_of(isa) << " " << count << " " << shift;
      }
    }
  }
}

TEST(RandomRoundingSizes, RefusesSpansOfOtherSizes) {
  std::vector<std::uint16_t> to(3);
  EXPECT_THROW(round_at_random(HalfFormat::bf16, std::vector<float>(4), to, 1),
               std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
