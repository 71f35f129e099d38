#pragma once
/// Files that appear whole or not at all, with checksums, and with errors that name the file.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "gossamer/base/aligned_bytes.h"

namespace gossamer {

/// What tells one content from another: length and CRC-32 (the polynomial of zlib, gzip and PNG).
struct FileDigest {
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;

  bool operator==(const FileDigest&) const = default;
};

/// CRC-32 of `data`, going on from `so_far`.
std::uint32_t crc32_of(std::span<const std::byte> data, std::uint32_t so_far = 0);

/// Sixteen hexadecimal digits that no other process or thread has drawn.
std::string unique_suffix();

/// A file under construction: written beside `path`, which changes only in publish(). Left
/// unpublished, it is removed and `path` stays as it was.
class NewFile {
 public:
  /// Throws IoError when the folder does not take a file.
  explicit NewFile(std::filesystem::path path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Appends in pieces, with the checksum taken on the way. Blocks; throws IoError.
  void write(std::span<const std::byte> data);
  void write(std::string_view text);

  /// Brings the content to the disk, gives the file its name, and brings the folder to the disk.
  FileDigest publish();

 private:
  std::filesystem::path path_;
  std::filesystem::path aside_;
  int descriptor_ = -1;
  FileDigest digest_;
};

/// A NewFile of this content, published.
void write_file(const std::filesystem::path& path, std::string_view text);

/// For read_file(): as long as the memory allows.
inline constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

/// The content of a file in memory that begins on a 64-byte boundary.
struct FileBytes {
  AlignedBytes memory;
  std::size_t size = 0;

  std::span<const std::byte> span() const { return {memory.get(), size}; }
};

/// Reads a regular file of at most `limit_bytes`. It is read, not mapped: a bad disk or a file that
/// shrinks meanwhile is then an IoError, not a signal.
FileBytes read_file(const std::filesystem::path& path, std::uint64_t limit_bytes = kNoLimit);

/// Length and checksum of a regular file, read piece by piece.
FileDigest digest_file(const std::filesystem::path& path);

/// Brings the entries of a folder (names made, changed or removed) to the disk.
void sync_folder(const std::filesystem::path& folder);

/// Whether there is something of this name. Throws IoError where the system does not tell: a folder
/// on the way may not be entered.
bool is_there(const std::filesystem::path& path);

/// Throws IoError: `path`, what could not be done, the system's reason, and what to do about it.
[[noreturn]] void fail_system(const std::filesystem::path& path, std::string_view what, int error);

}  // namespace gossamer
