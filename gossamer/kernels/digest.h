#pragma once
/// Whether a vector is still what a copy of it holds, told without reading the copy.

#include <cstddef>
#include <cstdint>
#include <span>

namespace gossamer {

/// Of the bytes of a tile: two tiles that differ have the same one with probability 2⁻⁶⁴, about.
/// Each instruction set has its own, so they stay in the process.
using Digest = std::uint64_t;

/// Elements that have a digest of their own; so few that they stay in the first cache.
inline constexpr std::size_t kDigestTile = 2048;

/// How many tiles a vector has; the last may be shorter.
constexpr std::size_t digest_count(std::size_t elements) {
  return (elements + kDigestTile - 1) / kDigestTile;
}

/// Copies x past the caches to `to`, which it must not overlap, and writes the digests of its
/// tiles. Throws std::invalid_argument unless `to` is as long as x and there is one digest per
/// tile.
template <class T>
void copy_digested(std::span<const T> x, std::span<T> to, std::span<Digest> digests);

}  // namespace gossamer
