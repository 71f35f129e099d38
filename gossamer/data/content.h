#pragma once
/// What tells the content of data from another, wherever it lies.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/disk.h"

namespace gossamer {

/// Length and checksum of all that was read, in the order in which it was added.
class Content {
 public:
  void add(std::span<const std::uint8_t> bytes);
  void add(std::string_view text);
  /// A file that stays where it is counts by its length, and its name is in the checksum.
  void add_file(std::string_view name, std::uint64_t bytes);
  /// Where the ends of lines matter.
  void add_lines(const std::vector<std::string>& lines);

  /// "98005 bytes, crc32 0a1b2c3d".
  std::string text() const;

 private:
  FileDigest digest_;
};

}  // namespace gossamer
