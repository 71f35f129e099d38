#pragma once
/// A fork has copies of everything but the threads, and must leave connections to its parent.

#include <unistd.h>

#include <utility>

namespace gossamer::python {

/// The process that made this.
class HomeProcess {
 public:
  bool is_here() const { return ::getpid() == process_; }

 private:
  pid_t process_ = ::getpid();
};

/// Gives something up without ending it: for a fork, where its end would wait for threads that do
/// not exist, and say good-bye in the parent's name.
template <class T>
void abandon(T& owner) {
  static_cast<void>(new T(std::move(owner)));
}

}  // namespace gossamer::python
