#pragma once
/// The arithmetic behind CRC-32C: polynomials over two elements modulo its own, bits reflected.

#include <cstdint>

namespace gossamer {

/// c(x) · x.
constexpr std::uint32_t crc32c_times_x(std::uint32_t c) {
  return (c >> 1U) ^ ((c & 1U) != 0 ? 0x82f63b78U : 0U);
}

/// x^n.
constexpr std::uint32_t crc32c_power(int n) {
  std::uint32_t c = 0x80000000U;
  for (int i = 0; i < n; ++i) c = crc32c_times_x(c);
  return c;
}

}  // namespace gossamer
