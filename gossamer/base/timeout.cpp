#include "gossamer/base/timeout.h"

#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {

std::chrono::nanoseconds duration_of(double seconds, std::string_view place) {
  if (!(seconds >= 0)) {
    fail_argument({.place = place,
                   .what = "a timeout must be a number of seconds from 0 up",
                   .got = std::to_string(seconds)});
  }
  const std::chrono::duration<double> wanted(seconds);
  if (wanted >= kNoLimitOfTime) return kNoLimitOfTime;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(wanted);
}

void check_timeout(double seconds, std::string_view place) {
  if (seconds > 0) return;
  fail_argument({.place = place,
                 .what = "timeout_s must be positive",
                 .got = std::to_string(seconds),
                 .remedy = "give a number of seconds; inf means no limit"});
}

}  // namespace gossamer
