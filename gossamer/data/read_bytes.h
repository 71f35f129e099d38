#pragma once
/// Reads files into memory, unpacking gzip on the way.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gossamer {

/// The bytes of a plain or gzip-compressed file, whichever it is: the first `limit` of them, or
/// all. Throws IoError that names the file when it cannot be opened, is no file, or its gzip stream
/// is broken.
std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path, std::int64_t limit);

/// All bytes of such a file. Throws IoError also where there are more than `most`.
std::vector<std::uint8_t> read_whole(const std::filesystem::path& path, std::int64_t most);

/// The path in quotes, for messages.
std::string quoted(const std::filesystem::path& path);

}  // namespace gossamer
