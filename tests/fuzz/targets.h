#pragma once
/// The table of fuzz targets; see Note [Fuzz targets].

#include <span>

#include "gossamer/base/fuzz.h"

namespace gossamer {

std::span<const FuzzTarget> fuzz_targets();

}  // namespace gossamer
