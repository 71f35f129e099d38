#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "gossamer/kernels/ref.h"

namespace gossamer::ref {
namespace {

/// The upper 16 bits of a 32-bit hash by Chris Wellons ("lowbias32"), with a second word inside.
std::uint32_t sixteen_bits(std::uint32_t i, std::uint32_t first, std::uint32_t second) {
  std::uint32_t h = i ^ first;
  h ^= h >> 16;
  h *= 0x7feb352dU;
  h ^= h >> 15;
  h += second;
  h *= 0x846ca68bU;
  return h >> 16;
}

std::uint16_t sign_of(float x) { return std::signbit(x) ? 0x8000U : 0U; }

std::uint16_t to_bf16(float x, std::uint32_t random) {
  constexpr std::uint32_t kLargest = 0x7F7FU;
  if (std::isnan(x)) return sign_of(x) | 0x7FC0U;
  if (std::isinf(x)) return sign_of(x) | 0x7F80U;
  const auto magnitude = std::bit_cast<std::uint32_t>(std::fabs(x));
  const std::uint32_t lower = magnitude >> 16;
  const bool goes_up = (magnitude & 0xFFFFU) + random > 0xFFFFU;
  return static_cast<std::uint16_t>(sign_of(x) | std::min(lower + (goes_up ? 1U : 0U), kLargest));
}

std::uint16_t to_fp16(float x, std::uint32_t random) {
  constexpr std::uint32_t kLargest = 0x7BFFU;
  if (std::isnan(x)) return sign_of(x) | 0x7E00U;
  if (std::isinf(x)) return sign_of(x) | 0x7C00U;
  const float size = std::fabs(x);
  if (size >= 65536.0F) return static_cast<std::uint16_t>(sign_of(x) | kLargest);
  const int exponent = size == 0 ? -14 : std::max(std::ilogb(size), -14);
  const float steps = std::ldexp(size, 10 - exponent);  // below 2048
  const float drawn = static_cast<float>(random >> 3) / 8192;
  const float whole = std::floor(steps);
  // Exact; below 2⁻¹⁴ there may be more digits, and the sum is rounded.
  const float sum = exponent > -14 || size >= 0x1p-14F ? (steps - whole) + drawn : steps + drawn;
  const float count = size >= 0x1p-14F ? whole + std::floor(sum) : std::floor(sum);
  const auto code = static_cast<std::uint32_t>((exponent + 14) * 1024 + static_cast<int>(count));
  return static_cast<std::uint16_t>(sign_of(x) | std::min(code, kLargest));
}

}  // namespace

void round_bf16(const Rounding& job) {
  for (std::uint32_t i = 0; i < job.count; ++i) {
    job.to[i] = to_bf16(job.x[i], sixteen_bits(i, job.first, job.second));
  }
}

void round_fp16(const Rounding& job) {
  for (std::uint32_t i = 0; i < job.count; ++i) {
    job.to[i] = to_fp16(job.x[i], sixteen_bits(i, job.first, job.second));
  }
}

}  // namespace gossamer::ref
