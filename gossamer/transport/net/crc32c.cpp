#include "gossamer/transport/net/crc32c.h"

#include <array>

#include "gossamer/transport/net/crc32c_poly.h"
#include "gossamer/transport/net/crc32c_x86.h"

namespace gossamer {
namespace {

using Table = std::array<std::uint32_t, 256>;

/// [k][b]: what byte b leaves when k more bytes follow it.
constexpr std::array<Table, 8> kTables = [] {
  std::array<Table, 8> tables = {};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t left = b;
    for (Table& table : tables) {
      for (int bit = 0; bit < 8; ++bit) left = crc32c_times_x(left);
      table[b] = left;
    }
  }
  return tables;
}();

std::uint32_t run_by_table(std::uint32_t state, std::span<const std::byte> bytes) {
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint32_t next = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      next ^=
          kTables[7 - k][((state >> (8 * k)) & 255U) ^ at(i + k)] ^ kTables[3 - k][at(i + 4 + k)];
    }
    state = next;
  }
  for (; i < bytes.size(); ++i) state = (state >> 8U) ^ kTables[0][(state & 255U) ^ at(i)];
  return state;
}

Crc32cVariant best() {
  Crc32cVariant found = crc32c_variants().front();
  for (const Crc32cVariant& variant : crc32c_variants()) {
    if (variant.is_supported) found = variant;
  }
  return found;
}

}  // namespace

std::span<const Crc32cVariant> crc32c_variants() {
  static const std::array<Crc32cVariant, 3> variants = {
      {{"table", true, run_by_table},
       {"pclmul", crc32c_x86::has_pclmul(), crc32c_x86::run_by_pclmul},
       {"vpclmul", crc32c_x86::has_vpclmul(), crc32c_x86::run_by_vpclmul}}};
  return variants;
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
  static const Crc32cVariant variant = best();
  return ~variant.run(~crc, bytes);
}

}  // namespace gossamer
