#include "gossamer/transport/net/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>

#include "gossamer/transport/conformance_fixture.h"

namespace gossamer {
namespace {

using conformance::Bytes;
using conformance::pattern;

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// By the definition, bit by bit: the remainder of a long division.
std::uint32_t divided(std::span<const std::byte> bytes) {
  std::uint32_t state = ~0U;
  for (const std::byte byte : bytes) {
    state ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1U) ^ ((state & 1U) * 0x82f63b78U);
  }
  return ~state;
}

TEST(Crc32c, HasTheValuesOfItsStandard) {
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c(bytes_of_text("123456789")), 0xe3069283U);  // the catalogue's check value
  EXPECT_EQ(crc32c(Bytes(32)), 0x8a9136aaU);                   // RFC 3720 B.4
  EXPECT_EQ(crc32c(Bytes(32, std::byte{255})), 0x62a8ab43U);   // RFC 3720 B.4
}

TEST(Crc32c, DividesForEverySizeAndAlignment) {
  const Bytes all = pattern(1400, 3);
  for (std::size_t size = 0; size < 1300; size += size < 600 ? 1 : 37) {
    const auto bytes = std::span(all).subspan(size % 67, size);
    ASSERT_EQ(crc32c(bytes), divided(bytes)) << size;
  }
}

TEST(Crc32c, GoesOnWhereItStopped) {
  const Bytes all = pattern(5000, 4);
  const std::span<const std::byte> bytes = all;
  for (const std::size_t cut : {0UL, 1UL, 63UL, 512UL, 4999UL, 5000UL}) {
    EXPECT_EQ(crc32c(bytes.subspan(cut), crc32c(bytes.first(cut))), divided(bytes)) << cut;
  }
}

}  // namespace
}  // namespace gossamer
