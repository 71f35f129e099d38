#pragma once
/// The streams of averaged gradients, which tell their exchanges apart from others.

#include <cstdint>

namespace gossamer {

// Streams of the engine are not below −1.
inline constexpr std::int32_t kPresenceStream = -2;
/// Of rows; below it those of their values, by element type.
inline constexpr std::int32_t kRowStream = -3;
/// Of bucket 0; below it those of the others.
inline constexpr std::int32_t kBucketStream = -6;

}  // namespace gossamer
