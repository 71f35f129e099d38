#pragma once
/// Clock: what deadlines, silences and durations are measured by.

#include <chrono>
#include <memory>

namespace gossamer {

/// Note [Time that stands still]: a scheduler may stop all processes of a job for an hour and let
/// them go on; a machine may be suspended. Nobody was late meanwhile. So the clock leaves out the
/// time in which the whole process stood still. A thread looks at it twice a second for as long as
/// a StandstillWatch lives; where nobody has for some seconds, the process stood still, and whoever
/// comes first moves the clock back, before any deadline is compared with it.

/// The system's steady clock, less the time in which this process stood still while somebody
/// watched.
struct Clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept;
  /// When the last standstill had ended; long ago where there was none.
  static time_point after_standstill() noexcept;
};

using Deadline = Clock::time_point;

/// As long as one lives, the clock leaves out a standstill.
class StandstillWatch {
 public:
  StandstillWatch();

 private:
  class Ticker;
  std::shared_ptr<Ticker> ticker_;  // one for all
};

}  // namespace gossamer
