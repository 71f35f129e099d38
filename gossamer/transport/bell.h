#pragma once
/// Bell: wakes the threads that wait for something to happen to one worker.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// Note [No lost wake-ups]: the bell counts its rings, and remembers per thread which ring it heard
/// last. What rings between a thread's look at its requests and its wait ends that wait at once;
/// what the thread has been told already does not, so it neither sleeps through news nor spins.
class Bell {
 public:
  void ring();
  /// Blocks until a ring that this thread has not heard, or `until`; true for a ring.
  bool wait(Deadline until);
  /// Whether there was such a ring; it is heard by that.
  bool has_rung();

 private:
  std::uint64_t& heard();

  std::mutex mutex_;  // guards all below
  std::condition_variable rung_;
  std::uint64_t rings_ = 0;
  std::unordered_map<std::thread::id, std::uint64_t> heard_;
};

}  // namespace gossamer
