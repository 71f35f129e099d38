#pragma once
/// CRC-32C with the instructions of x86 processors; elsewhere none of them is there.

#include <cstddef>
#include <cstdint>
#include <span>

/// Only to be run where the processor has what it needs.
namespace gossamer::crc32c_x86 {

bool has_pclmul();
bool has_vpclmul();
std::uint32_t run_by_pclmul(std::uint32_t state, std::span<const std::byte> bytes);
std::uint32_t run_by_vpclmul(std::uint32_t state, std::span<const std::byte> bytes);

}  // namespace gossamer::crc32c_x86
