#pragma once
/// WakeUp: wakes the threads that wait for something to happen to one worker.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// Note [No lost wake-ups]: a WakeUp counts its notifications, and remembers per thread which one
/// the thread has seen last. A notification between a thread's look at its requests and its wait
/// ends that wait at once. One that the thread has seen does not. So a thread neither misses a
/// notification nor spins.
class WakeUp {
 public:
  void notify();
  /// Blocks until a notification that this thread has not seen, or `until`; true for the former.
  bool wait(Deadline until);
  /// Whether there was such a notification; this thread has seen it then.
  bool take();

 private:
  std::uint64_t& seen();

  std::mutex mutex_;  // guards all below
  std::condition_variable notified_;
  std::uint64_t notifications_ = 0;
  std::unordered_map<std::thread::id, std::uint64_t> seen_;
};

}  // namespace gossamer
