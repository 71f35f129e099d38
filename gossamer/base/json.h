#pragma once
/// JSON with the keys in the order they were written.

#include <cmath>
#include <nlohmann/json.hpp>

namespace gossamer {

using Json = nlohmann::ordered_json;

/// null for what JSON has no number for: infinite, or no number.
inline Json finite_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace gossamer
