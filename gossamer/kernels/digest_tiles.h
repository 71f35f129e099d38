#pragma once
/// Digests of tiles; see Note [One loop, many instruction sets] in fused_loop.h.
///
/// Note [Digests ahead]: a pass waits for memory, and a digest for arithmetic. So the digest of the
/// next tile is computed in the loop over this one. That brings the tile's x into the first cache,
/// where the pass then finds it.

#include "gossamer/kernels/kernel_table.h"
#include "gossamer/kernels/streaming.h"

namespace gossamer {
namespace {

constexpr std::size_t kDigested = 256;  // bytes at a time

/// Eight chains of Stream::scramble, which is a round of AES or as good.
template <class Stream>
class Digester {
 public:
  using Block = typename Stream::Block;  ///< of 16 bytes

  Digester() {
    for (std::size_t k = 0; k < kChains; ++k) chains_[k] = Block{1, static_cast<long long>(k)};
  }
  /// The next kDigested bytes.
  [[gnu::always_inline]] void add(const void* bytes) {
    for (std::size_t k = 0; k < kDigested / sizeof(Block); ++k) {
      Block block;
      __builtin_memcpy(&block, static_cast<const char*>(bytes) + k * sizeof(Block), sizeof block);
      chains_[k % kChains] = Stream::scramble(chains_[k % kChains], block);
    }
  }
  Digest fold() const {
    const auto rounds = [](Block block, int count) {
      for (int k = 0; k < count; ++k) block = Stream::scramble(block, Block{3, 5});
      return block;
    };
    Block all{};
    for (const Block& chain : chains_) all = Stream::scramble(all, rounds(chain, 2));
    return static_cast<Digest>(rounds(all, 3)[0]);
  }

 private:
  static constexpr std::size_t kChains = 8;
  Block chains_[kChains];
};

/// What is not a whole number of kDigested bytes is filled up with zeros.
template <class Stream, class T>
Digest digest_of(Range tile, const T* x) {
  Digester<Stream> digest;
  const char* at = reinterpret_cast<const char*>(x + tile.begin);
  std::size_t left = (tile.end - tile.begin) * sizeof(T);
  for (; left >= kDigested; left -= kDigested, at += kDigested) digest.add(at);
  if (left > 0) {
    char last[kDigested] = {};
    __builtin_memcpy(last, at, left);
    digest.add(last);
  }
  return digest.fold();
}

/// Copies a whole tile past the caches to the start of a line, and returns its digest.
template <class Stream, class T>
Digest copy_tile(T* to, const T* x) {
  Digester<Stream> digest;
  constexpr std::size_t kGroup = kDigested / sizeof(T);
  for (std::size_t i = 0; i < kDigestTile; i += kGroup) {
    digest.add(x + i);
    stream<Stream>(to + i, x + i, kDigested);
  }
  return digest.fold();
}

/// The tile of digests that begins at `begin`, within the range.
inline Range digest_tile(Range range, std::size_t begin) {
  const std::size_t left = range.end - begin;
  return {begin, begin + (left < kDigestTile ? left : kDigestTile)};
}

/// Calls tile(sub-range, its digest) for each tile of the range, in order.
template <class D, class F>
void for_each_digest(Range range, D* digests, const F tile) {
  for (std::size_t begin = range.begin; begin < range.end; begin += kDigestTile) {
    tile(digest_tile(range, begin), digests[begin / kDigestTile]);
  }
}

/// The mix of a tile in which the first source is x: that counts as x, and is not read.
template <class T>
MixArgs<T> without_first(const MixArgs<T>& mix) {
  MixArgs<T> rest = mix;
  rest.self_weight += mix.sources[0].weight;
  rest.sources += 1;
  rest.source_count -= 1;
  return rest;
}

}  // namespace
}  // namespace gossamer
