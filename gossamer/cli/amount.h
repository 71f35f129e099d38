#pragma once
/// Numbers of parameters and tokens as people write them: 25M, 7B.

#include <cstdint>
#include <string>
#include <string_view>

namespace gossamer {

/// "25M", "7.5B" or "1000000" as a number from 1 to 1e13; k, M and B (or G) are powers of 1000.
/// Throws std::invalid_argument that names `flag`.
std::int64_t parse_amount(std::string_view flag, const std::string& text,
                          const std::string& command);

}  // namespace gossamer
