#pragma once
/// Views of a bucket's memory as elements.

#include <cstddef>
#include <cstdint>
#include <span>

namespace gossamer {

template <class T>
std::span<T> typed(void* data, std::int64_t offset, std::int64_t count) {
  return {static_cast<T*>(data) + offset, static_cast<std::size_t>(count)};
}

template <class T>
std::span<const T> typed(const void* data, std::int64_t offset, std::int64_t count) {
  return {static_cast<const T*>(data) + offset, static_cast<std::size_t>(count)};
}

}  // namespace gossamer
