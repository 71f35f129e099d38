#pragma once
/// Memory that other processes of this host can read in place.

#include <cstddef>

#include "gossamer/base/descriptor.h"

namespace gossamer {

/// Zeroed pages that live as long as somebody maps them and have no name, so that nothing is left
/// behind by a process that is killed. A page takes memory once it is touched.
class SharedMemory {
 public:
  /// Throws IoError when the system gives none.
  explicit SharedMemory(std::size_t bytes);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// What another process needs to map it.
  int descriptor() const { return file_.get(); }
  bool contains(const void* begin, std::size_t bytes) const;

 private:
  Descriptor file_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The SharedMemory of another process, for reading.
class SharedMapping {
 public:
  /// Throws IoError for what is not a SharedMemory of at least `bytes` bytes: one that could shrink
  /// would end the process that reads it.
  SharedMapping(Descriptor file, std::size_t bytes);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace gossamer
