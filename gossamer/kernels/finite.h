#pragma once
/// Whether numbers are finite, as fast as they can be read.

#include <span>

namespace gossamer {

/// Whether no element is infinite or not a number.
template <class T>
bool all_finite(std::span<const T> a);

}  // namespace gossamer
