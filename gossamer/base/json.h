#pragma once
/// JSON with the keys in the order they were written.

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

namespace gossamer {

using Json = nlohmann::ordered_json;

/// null for what JSON has no number for: infinite, or no number.
inline Json finite_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// The JSON of a text that may be anybody's, at most `levels` deep: deeper values would take more
/// stack than a thread has. Throws std::invalid_argument that says what is wrong, without a place.
Json parse_json(std::string_view text, int levels = 8);

}  // namespace gossamer
