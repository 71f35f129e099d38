#pragma once
/// A file descriptor with one owner, who is not a fork.

#include <utility>

namespace gossamer {

/// Closed with its owner.
///
/// Note [Forks]: a child that is forked without exec, as data loaders' workers are, has a copy of
/// every descriptor. Copies would keep connections open when the parent dies, so that peers do not
/// hear of it, and locks taken. So a child closes all of them as soon as it runs; owners in it hold
/// numbers that are not theirs any more, and close nothing.
class Descriptor {
 public:
  explicit Descriptor(int number = -1);
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  void reset();

 private:
  int number_;
};

/// Raises the number that this process may have open, as far as the system lets it without asking,
/// but no further than what others make of it: select() and what copies all of them.
void allow_many_descriptors();

}  // namespace gossamer
