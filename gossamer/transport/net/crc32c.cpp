#include "gossamer/transport/net/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace gossamer {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) {
  constexpr std::size_t kMost = std::size_t{1} << 30U;  // ISA-L counts bytes in an int
  std::uint32_t state = ~crc;                           // and leaves the inversions to its caller
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kMost);
    // It writes nothing, though its parameter is not const.
    auto* first = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(first, static_cast<int>(count), state);
    bytes = bytes.subspan(count);
  }
  return ~state;
}

}  // namespace gossamer
