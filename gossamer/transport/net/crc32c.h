#pragma once
/// CRC-32C: a checksum of what travels, as fast as the processor computes it.

#include <cstddef>
#include <cstdint>
#include <span>

namespace gossamer {

/// CRC-32C (Castagnoli, reflected, RFC 3720 B.4) of what `crc` is the checksum of followed by
/// `bytes`; 0 is that of nothing.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

/// One way to compute it, with a register that is inverted at both ends.
struct Crc32cVariant {
  const char* name;
  bool is_supported;  ///< by this processor
  std::uint32_t (*run)(std::uint32_t, std::span<const std::byte>);
};

/// The last one that is supported is used.
std::span<const Crc32cVariant> crc32c_variants();

}  // namespace gossamer
