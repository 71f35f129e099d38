#pragma once
/// Stores that bypass the caches; see Note [One loop, many instruction sets] in fused_loop.h.
///
/// Stream is what each *_table.cpp says of its instruction set: a `Vector`, `store(Vector* to,
/// Vector)` past the caches to an aligned place, and `fence()`, which must come before another
/// thread hears of such stores. For digests it has a `Block` of 16 bytes and `scramble(Block,
/// Block)`.

#include <cstddef>

namespace gossamer {
namespace {

/// Copies whole vectors past the caches. `to` is aligned to a vector.
template <class Stream>
[[gnu::always_inline]] inline void stream(void* to, const void* from, std::size_t bytes) {
  using Vector = typename Stream::Vector;
  auto* const vectors = static_cast<Vector*>(to);
  for (std::size_t k = 0; k < bytes / sizeof(Vector); ++k) {
    Vector value;
    __builtin_memcpy(&value, static_cast<const char*>(from) + k * sizeof(Vector), sizeof(Vector));
    Stream::store(vectors + k, value);
  }
}

/// Any number of bytes between regions that do not overlap: the ends are copied plainly.
template <class Stream>
void streaming_copy(void* destination, const void* source, std::size_t bytes) {
  constexpr std::size_t kWidth = sizeof(typename Stream::Vector);
  auto* const to = static_cast<char*>(destination);
  const auto* const from = static_cast<const char*>(source);
  std::size_t head = (kWidth - reinterpret_cast<std::size_t>(to) % kWidth) % kWidth;
  head = head < bytes ? head : bytes;
  const std::size_t middle = (bytes - head) / kWidth * kWidth;
  __builtin_memcpy(to, from, head);
  stream<Stream>(to + head, from + head, middle);
  Stream::fence();
  __builtin_memcpy(to + head + middle, from + head + middle, bytes - head - middle);
}

}  // namespace
}  // namespace gossamer
