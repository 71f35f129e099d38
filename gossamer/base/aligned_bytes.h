#pragma once
/// Memory that begins on a cache line.

#include <cstddef>
#include <memory>
#include <new>

namespace gossamer {

inline constexpr std::size_t kCacheLine = 64;

/// The next multiple of a cache line.
constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

struct AlignedDelete {
  void operator()(std::byte* memory) const {
    ::operator delete[](memory, std::align_val_t{kCacheLine});
  }
};

using AlignedBytes = std::unique_ptr<std::byte[], AlignedDelete>;

/// Not initialised. Throws std::bad_alloc.
inline AlignedBytes make_aligned_bytes(std::size_t size) {
  return AlignedBytes(
      static_cast<std::byte*>(::operator new[](size, std::align_val_t{kCacheLine})));
}

}  // namespace gossamer
