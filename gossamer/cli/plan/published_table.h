#pragma once
/// The runtime model beside published measurements.

#include <string>

#include "gossamer/base/json.h"

namespace gossamer {

/// Every published point; what the model says with up to three constants per kind of hardware that
/// are fitted to all points, and with constants that are fitted to all others; then the lecture's
/// ImageNet runs. A second of computing.
std::string published_table();
Json published_json();

}  // namespace gossamer
