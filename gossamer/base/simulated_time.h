#pragma once
/// SimulatedTime: a clock that tests set, of threads that run one at a time.

#include <functional>
#include <utility>
#include <vector>

#include "gossamer/base/clock.h"

namespace gossamer {

/// Note [Simulated time]: to play thousands of runs, and each of them again, a test lets the
/// threads of all workers take turns and says what time it is. While one of these lives, that is
/// the time of the thread that made it. Such a thread waits by nothing but Transport::progress(),
/// and what else a thread of its own does beside it, it does itself before it goes on.
class SimulatedTime {
 public:
  explicit SimulatedTime(const Clock::time_point& now);
  ~SimulatedTime();
  SimulatedTime(const SimulatedTime&) = delete;
  SimulatedTime& operator=(const SimulatedTime&) = delete;

  /// Null where time is real.
  static SimulatedTime* of_this_thread();
  /// Null: time is real. For who lets several workers take turns in one thread.
  static void set_of_this_thread(SimulatedTime* time);

  Clock::time_point now() const { return now_; }
  /// From now on this is done, too; until `owner` takes it back.
  void do_beside(const void* owner, std::function<void()> work);
  void take_back(const void* owner);
  /// What is to be done beside.
  void run_beside() const;

 private:
  const Clock::time_point& now_;
  std::vector<std::pair<const void*, std::function<void()>>> beside_;
};

}  // namespace gossamer
