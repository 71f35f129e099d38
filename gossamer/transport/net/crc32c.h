#pragma once
/// CRC-32C: a checksum of what travels, as fast as the processor computes it.

#include <cstddef>
#include <cstdint>
#include <span>

namespace gossamer {

/// CRC-32C (Castagnoli, reflected, RFC 3720 B.4) of what `crc` is the checksum of followed by
/// `bytes`; 0 is that of nothing. Computed by ISA-L.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc = 0);

}  // namespace gossamer
