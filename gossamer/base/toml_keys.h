#pragma once
/// Keys of TOML that are too deep to be parsed: toml++ walks down a dotted key by recursion.

#include <string>
#include <string_view>

namespace gossamer {

/// Throws std::invalid_argument, with file, line and column, where a key of `text` has more than 32
/// dots outside of quotes. Whether it is TOML otherwise is not looked at.
void refuse_long_keys(std::string_view text, const std::string& file);

}  // namespace gossamer
