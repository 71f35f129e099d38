#pragma once
/// Numbers of workers, buckets, elements and rounds are signed; places in arrays are not.

#include <cstddef>
#include <cstdint>

namespace gossamer {

/// `index`, which is not negative, as a place in an array.
constexpr std::size_t at(int index) { return static_cast<std::size_t>(index); }
constexpr std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace gossamer
