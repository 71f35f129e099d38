#pragma once
/// Packs text as gzip does.

#include <filesystem>
#include <string>
#include <string_view>

namespace gossamer {

/// A gzip file that holds `text`; the same text gives the same bytes.
std::string gzipped(std::string_view text);

/// What to write to `path` to have `text` there: packed where the name ends in .gz.
std::string packed_for(const std::filesystem::path& path, std::string text);

}  // namespace gossamer
