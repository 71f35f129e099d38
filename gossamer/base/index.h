#pragma once
/// Numbers of workers, hosts and rounds are ints; places in arrays are not.

#include <cstddef>

namespace gossamer {

/// `index`, which is not negative, as a place in an array.
inline std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace gossamer
