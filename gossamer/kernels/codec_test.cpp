#include "gossamer/kernels/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

using FloatLimits = std::numeric_limits<float>;
constexpr std::size_t kCount = 3 * kCodecBlock + 41;

template <class T>
std::vector<T> numbers(std::size_t count, std::uint64_t stream) {
  Rng rng(5, stream);
  std::vector<T> result(count);
  for (T& value : result) value = static_cast<T>(4 * rng.uniform() - 2);
  return result;
}

template <class T>
struct Residual {
  T* kept = nullptr;
  double own = 1;
  double keep = 0;
  T* error = nullptr;
};

template <class T>
std::vector<std::byte> coded(Codec codec, const std::vector<T>& x, const Residual<T>& rest = {}) {
  const auto count = static_cast<std::int64_t>(x.size());
  std::vector<std::byte> bytes(coded_bytes(codec, count, dtype_of<T>()));
  encode<T>(codec, {.x = x,
                    .coded = bytes,
                    .kept = rest.kept,
                    .own = rest.own,
                    .keep = rest.keep,
                    .error = rest.error});
  return bytes;
}

template <class T>
std::vector<T> decoded(Codec codec, const std::vector<std::byte>& bytes, std::size_t count,
                       std::int64_t offset = 0) {
  std::vector<T> result(count);
  decode<T>(codec, bytes, offset, result);
  return result;
}

template <class T>
std::vector<T> round_trip(Codec codec, const std::vector<T>& x) {
  return decoded<T>(codec, coded(codec, x), x.size());
}

template <class T>
double largest_of_block(const std::vector<T>& x, std::size_t i) {
  const std::size_t begin = i / kCodecBlock * kCodecBlock;
  double largest = 0;
  for (std::size_t k = begin; k < std::min(begin + kCodecBlock, x.size()); ++k) {
    largest = std::max(largest, std::abs(double{x[k]}));
  }
  return largest;
}

/// Half of what the block of element i has for a step, and the rounding of the numbers themselves.
template <class T>
double half_step(Codec codec, const std::vector<T>& x, std::size_t i) {
  const double rounding = 1 + std::ldexp(1.0, -14);
  switch (codec) {
    case Codec::fp32:
      return 0;
    case Codec::bf16:
      return std::max(std::abs(double{x[i]}) / 257, std::ldexp(1.0, -134)) * rounding;
    case Codec::int8:
      return std::max(largest_of_block(x, i) / 127, double{FloatLimits::min()}) / 2 * rounding;
  }
  return 0;
}

template <class T>
class Codecs : public testing::Test {};
using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(Codecs, Elements);

TYPED_TEST(Codecs, AreWithinHalfAStepAtEveryMagnitude) {
  using T = TypeParam;
  for (const Codec codec : kLossyCodecs) {
    for (int exponent = -149; exponent <= 126; ++exponent) {
      std::vector<T> x = numbers<T>(kCount, static_cast<std::uint64_t>(exponent + 200));
      for (T& value : x) value = static_cast<T>(std::ldexp(value, exponent));
      const std::vector<T> y = round_trip(codec, x);
      for (std::size_t i = 0; i < kCount; ++i) {
        const double bound = half_step(codec, x, i);
        ASSERT_LE(std::abs(double{y[i]} - double{x[i]}), bound)
            << name_of(codec) << ", x " << x[i] << ", exponent " << exponent << ", i " << i;
      }
    }
  }
}

TYPED_TEST(Codecs, FP32IsTheElementsThemselves) {
  using T = TypeParam;
  std::vector<T> x = numbers<T>(kCount, 0);
  x[3] = std::numeric_limits<T>::infinity();
  x[4] = std::numeric_limits<T>::denorm_min();
  std::vector<T> kept(kCount);
  EXPECT_EQ(round_trip(Codec::fp32, x), x);
  coded<T>(Codec::fp32, x, {.kept = kept.data(), .keep = 0.5});
  EXPECT_EQ(kept, x);
  x[3] = 0;
  std::vector<T> error(kCount, T{0.25});
  const std::vector<std::byte> bytes = coded<T>(Codec::fp32, x, {.error = error.data()});
  EXPECT_EQ(decoded<T>(Codec::fp32, bytes, kCount)[7], x[7] + T{0.25});
  EXPECT_EQ(error, std::vector<T>(kCount));
}

TYPED_TEST(Codecs, OfZerosAreZeros) {
  const std::vector<TypeParam> zeros(kCount);
  for (const Codec codec : kAllCodecs) EXPECT_EQ(round_trip(codec, zeros), zeros) << name_of(codec);
}

TYPED_TEST(Codecs, NeverHideWhatIsNotFinite) {
  using T = TypeParam;
  for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    for (std::size_t place = 0; place < kCount; place += 7) {
      std::vector<T> x = numbers<T>(kCount, 1);
      x[place] = static_cast<T>(bad);
      for (const Codec codec : kLossyCodecs) {
        const std::vector<T> y = round_trip(codec, x);
        for (std::size_t i = 0; i < kCount; ++i) {
          const bool same_block = i / kCodecBlock == place / kCodecBlock;
          const bool hit = codec == Codec::int8 ? same_block : i == place;
          ASSERT_EQ(std::isfinite(y[i]), !hit) << name_of(codec) << " " << place << " " << i;
        }
      }
      ASSERT_EQ(std::isnan(round_trip(Codec::bf16, x)[place]), std::isnan(bad));
    }
  }
}

TYPED_TEST(Codecs, KeepWhatTheRoundingLeftOut) {
  using T = TypeParam;
  const std::vector<T> x = numbers<T>(kCount, 2);
  const double unit = std::numeric_limits<T>::epsilon();
  for (const Codec codec : kLossyCodecs) {
    std::vector<T> kept = x;
    const std::vector<std::byte> bytes = coded<T>(codec, x, {.kept = kept.data(), .keep = 0.3});
    const std::vector<T> y = decoded<T>(codec, bytes, kCount);
    std::vector<T> in_place = x;
    coded<T>(codec, in_place, {.kept = in_place.data(), .keep = 0.3});
    EXPECT_EQ(in_place, kept);
    double left_out = 0;
    for (std::size_t i = 0; i < kCount; ++i) {
      const double residual = (double{kept[i]} - double{x[i]}) / 0.3;
      ASSERT_NEAR(double{y[i]} + residual, double{x[i]}, 16 * unit) << name_of(codec) << " " << i;
      left_out += std::abs(residual);
    }
    EXPECT_GT(left_out, 0.1);  // the codec is not exact, so there was something to keep
  }
}

/// See Note [Who keeps the residual]. Four workers that all take a quarter from each.
TYPED_TEST(Codecs, LeaveTheMeanOfTheWorkersAsItIs) {
  using T = TypeParam;
  const double unit = std::numeric_limits<T>::epsilon();
  for (const Codec codec : kLossyCodecs) {
    for (const bool feedback : {false, true}) {
      std::vector<double> before(kCount), after(kCount);
      for (std::uint64_t rank = 0; rank < 4; ++rank) {
        std::vector<T> x = numbers<T>(kCount, 10 + rank);
        std::vector<T> error(kCount, T(0.01));
        for (std::size_t i = 0; i < kCount; ++i) before[i] += double{x[i]};
        const std::vector<std::byte> bytes = coded<T>(
            codec, x,
            {.kept = x.data(), .keep = 0.75 / 0.25, .error = feedback ? error.data() : nullptr});
        const std::vector<T> sent = decoded<T>(codec, bytes, kCount);
        // What this worker and the three that hear it make of it.
        for (std::size_t i = 0; i < kCount; ++i) after[i] += 0.25 * x[i] + 3 * 0.25 * sent[i];
      }
      for (std::size_t i = 0; i < kCount; ++i) {
        ASSERT_NEAR(after[i], before[i], 32 * unit) << name_of(codec) << " " << i;
      }
    }
  }
}

TYPED_TEST(Codecs, WithErrorFeedbackAreRightInTheLongRun) {
  using T = TypeParam;
  constexpr int kRounds = 1000;
  const double unit = std::numeric_limits<T>::epsilon();
  for (const Codec codec : kLossyCodecs) {
    std::vector<T> error(kCount);
    std::vector<double> sum_x(kCount), sum_sent(kCount);
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<T> x = numbers<T>(kCount, static_cast<std::uint64_t>(round));
      const std::vector<std::byte> bytes = coded<T>(codec, x, {.error = error.data()});
      const std::vector<T> sent = decoded<T>(codec, bytes, kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        sum_x[i] += double{x[i]};
        sum_sent[i] += double{sent[i]};
      }
    }
    // |x| < 2, so that a step of bf16 is at most 2⁻⁷ · 2 and one of int8 not much above 2/127.
    for (std::size_t i = 0; i < kCount; ++i) {
      const double apart = sum_x[i] - sum_sent[i];
      ASSERT_LE(std::abs(apart), 1.0 / 64) << name_of(codec) << " " << i;
      ASSERT_NEAR(apart, double{error[i]}, 4 * kRounds * unit) << name_of(codec) << " " << i;
    }
  }
}

TYPED_TEST(Codecs, DecodeAnyRangeOfTheBytesUpToIt) {
  using T = TypeParam;
  const std::vector<T> x = numbers<T>(kCount, 3);
  for (const Codec codec : kAllCodecs) {
    const std::vector<std::byte> bytes = coded(codec, x);
    const std::vector<T> whole = decoded<T>(codec, bytes, kCount);
    for (const std::size_t offset : {0u, 1u, 255u, 256u, 257u, 500u, 800u}) {
      const std::size_t count = std::min<std::size_t>(300, kCount - offset);
      const auto end = static_cast<std::int64_t>(offset + count);
      std::vector<std::byte> prefix(
          bytes.begin(),
          bytes.begin() + static_cast<std::ptrdiff_t>(coded_bytes(codec, end, dtype_of<T>())));
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(offset);
      const std::vector<T> expected(begin, begin + static_cast<std::ptrdiff_t>(count));
      const auto first = static_cast<std::int64_t>(offset);
      EXPECT_EQ(decoded<T>(codec, prefix, count, first), expected) << name_of(codec) << offset;
      std::vector<T> sum(count, T{1});
      decode_add<T>(codec, prefix, first, sum);
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(sum[i], T{1} + expected[i]) << i;
      prefix.pop_back();
      EXPECT_THROW(decoded<T>(codec, prefix, count, first), std::invalid_argument);
      EXPECT_THROW(decode_add<T>(codec, prefix, first, sum), std::invalid_argument);
    }
  }
}

TYPED_TEST(Codecs, RefuseSizesThatDoNotFit) {
  using T = TypeParam;
  const std::vector<T> x(300);
  for (const Codec codec : kAllCodecs) {
    std::vector<std::byte> bytes(coded_bytes(codec, 300, dtype_of<T>()) + 1);
    EXPECT_THROW(encode<T>(codec, {.x = x, .coded = bytes}), std::invalid_argument);
    EXPECT_THROW(decoded<T>(codec, bytes, 1, -1), std::invalid_argument);
    EXPECT_TRUE(round_trip<T>(codec, {}).empty());
  }
}

TEST(Bf16, RoundsEveryNumberToTheNearestAndTiesToEven) {
  const auto float_of = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
  constexpr std::uint32_t kInfinity = 0x7F80;
  for (const std::uint32_t sign : {0x0000u, 0x8000u}) {
    for (std::uint32_t magnitude = 0; magnitude < kInfinity; ++magnitude) {
      const std::uint32_t upper = sign | magnitude;
      const std::uint32_t even = upper + magnitude % 2;
      const std::vector<float> x{float_of(upper << 16), float_of(upper << 16 | 0x7FFF),
                                 float_of(upper << 16 | 0x8000), float_of(upper << 16 | 0x8001)};
      const std::vector<float> expected{float_of(upper << 16), float_of(upper << 16),
                                        float_of(even << 16), float_of((upper + 1) << 16)};
      const std::vector<float> y = round_trip(Codec::bf16, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(y[i]), std::bit_cast<std::uint32_t>(expected[i]))
            << "x " << x[i] << ", y " << y[i];
      }
    }
  }
}

TEST(Bf16, KeepsNaNsWhoseBitsAreAllInTheLowerHalf) {
  for (const std::uint32_t bits : {0x7F800001u, 0xFF80FFFFu, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
    EXPECT_TRUE(std::isnan(round_trip<float>(Codec::bf16, {std::bit_cast<float>(bits)})[0]))
        << bits;
  }
}

TEST(Int8, RoundsToTheNearestAndTiesToEven) {
  // 127 is the largest of the block, and 127 · (1/127 as float) is 1, so that codes are numbers.
  const std::vector<float> x{127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -126.5F, 3.49F, -3.51F, -127};
  const std::vector<float> expected{127, 0, 2, 2, 0, -2, -126, 3, -4, -127};
  EXPECT_EQ(round_trip(Codec::int8, x), expected);
}

TEST(Int8, OfTheLargestAndTheSmallestFloatsIsFinite) {
  const std::vector<float> largest(kCount, FloatLimits::max());
  for (const float y : round_trip(Codec::int8, largest)) {
    ASSERT_NEAR(y / FloatLimits::max(), 1.0F, 1e-6F);
  }
  const std::vector<float> smallest(kCount, FloatLimits::denorm_min());
  EXPECT_EQ(round_trip(Codec::int8, smallest), std::vector<float>(kCount));
}

TEST(Codecs, OfDoublesBeyondFloatAreNotFinite) {
  const std::vector<double> x{1, -1e300, 2};
  EXPECT_EQ(round_trip(Codec::bf16, x)[1], -HUGE_VAL);
  for (const double y : round_trip(Codec::int8, x)) EXPECT_TRUE(std::isnan(y));
}

}  // namespace
}  // namespace gossamer
