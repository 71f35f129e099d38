#include "gossamer/torch/tensors/random_rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

constexpr std::size_t kRoundedBlock = 4096;  // elements with one key
constexpr std::uint32_t kMagnitude = 0x7FFFFFFFU;
constexpr std::uint32_t kInfinity = 0x7F800000U;

/// Sixteen random bits of element i of a block. Words of 32 bits, which every vector unit can
/// multiply; the constants are those of a 32-bit hash by Chris Wellons ("lowbias32").
[[gnu::always_inline]] inline std::uint32_t sixteen_bits(std::uint32_t i, std::uint32_t first,
                                                         std::uint32_t second) {
  std::uint32_t h = i ^ first;
  h = (h ^ (h >> 16)) * 0x7feb352dU;
  h = ((h ^ (h >> 15)) + second) * 0x846ca68bU;
  return h >> 16;
}

/// A carry out of the bits that go is the step to the upper neighbour.
[[gnu::always_inline]] inline std::uint16_t rounded(float x, std::uint32_t random, c10::BFloat16) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & kMagnitude;
  const std::uint32_t raised = bits + random;
  const std::uint32_t largest = (bits & ~kMagnitude) | 0x7F7F0000U;
  const bool overflows = (raised & kMagnitude) >= kInfinity;
  const std::uint32_t finite = overflows ? largest : raised;
  const std::uint32_t special = magnitude > kInfinity ? bits | 0x400000U : bits;
  return static_cast<std::uint16_t>((magnitude < kInfinity ? finite : special) >> 16);
}

/// Likewise; numbers below the smallest normal one lie in steps of 2⁻²⁴, and go through those.
[[gnu::always_inline]] inline std::uint16_t rounded(float x, std::uint32_t random, c10::Half) {
  constexpr std::uint32_t kSmallestNormal = 0x38800000U;  // 2⁻¹⁴
  constexpr std::uint32_t kRebias = (127U - 15U) << 23;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & kMagnitude;
  const std::uint32_t drawn = random >> 3;  // thirteen bits go
  const std::uint32_t normal = std::min((magnitude + drawn - kRebias) >> 13, 0x7BFFU);
  const bool is_small = magnitude < kSmallestNormal;
  const auto small = std::bit_cast<float>(is_small ? magnitude : 0U);
  const float raised = small * 0x1p24F + static_cast<float>(static_cast<int>(drawn)) * 0x1p-13F;
  const auto steps = static_cast<std::uint32_t>(static_cast<int>(raised));
  const std::uint32_t special = magnitude > kInfinity ? 0x7E00U : 0x7C00U;
  const std::uint32_t finite = is_small ? steps : normal;
  const std::uint32_t kept = magnitude < kInfinity ? finite : special;
  return static_cast<std::uint16_t>((bits & ~kMagnitude) >> 16 | kept);
}

template <class T>
void round_block(const float* x, std::uint16_t* to, std::size_t count, std::uint64_t key) {
  const auto first = static_cast<std::uint32_t>(key);
  const auto second = static_cast<std::uint32_t>(key >> 32);
  const auto end = static_cast<std::uint32_t>(count);
#pragma GCC ivdep
  for (std::uint32_t i = 0; i < end; ++i)
    to[i] = rounded(x[i], sixteen_bits(i, first, second), T{});
}

}  // namespace

std::uint64_t rounding_key(std::string_view name, int worker, std::int64_t step) {
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return mix_bits(mix_bits(hash, static_cast<std::uint64_t>(worker)),
                  static_cast<std::uint64_t>(step));
}

template <class T>
void round_at_random(std::span<const float> x, std::span<T> to, std::uint64_t key) {
  static_assert(sizeof(T) == sizeof(std::uint16_t));
  GOSSAMER_ASSERT(x.size() == to.size());
  auto* const bits = reinterpret_cast<std::uint16_t*>(to.data());
  for (std::size_t begin = 0; begin < x.size(); begin += kRoundedBlock) {
    const std::size_t count = std::min(kRoundedBlock, x.size() - begin);
    round_block<T>(x.data() + begin, bits + begin, count, counted_bits(key, begin));
  }
}

template void round_at_random(std::span<const float>, std::span<c10::BFloat16>, std::uint64_t);
template void round_at_random(std::span<const float>, std::span<c10::Half>, std::uint64_t);

}  // namespace gossamer
