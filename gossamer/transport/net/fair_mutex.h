#pragma once
/// FairMutex: a mutex that whoever has just given it up does not get before those that wait.

#include <mutex>

namespace gossamer {

/// For a thread that takes it again and again, with short breaks that are too short for a thread
/// that wakes up.
class FairMutex {
 public:
  void lock() {
    const std::lock_guard turn(queue_);
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex queue_;  // held by the one that is next
  std::mutex mutex_;
};

}  // namespace gossamer
