#include "gossamer/data/content.h"

#include <cstdio>

namespace gossamer {

void Content::add(std::span<const std::uint8_t> bytes) {
  digest_.bytes += bytes.size();
  digest_.crc32 = crc32_of(std::as_bytes(bytes), digest_.crc32);
}

void Content::add(std::string_view text) {
  add({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

void Content::add_file(std::string_view name, std::uint64_t bytes) {
  const std::string line = std::string(name) + '\n' + std::to_string(bytes) + '\n';
  digest_.bytes += bytes;
  digest_.crc32 = crc32_of(std::as_bytes(std::span(line)), digest_.crc32);
}

void Content::add_lines(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    add(line);
    add("\n");
  }
}

std::string Content::text() const {
  char checksum[24];
  std::snprintf(checksum, sizeof checksum, "crc32 %08x", digest_.crc32);
  return std::to_string(digest_.bytes) + " bytes, " + checksum;
}

}  // namespace gossamer
