#include "gossamer/base/timeout.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

namespace gossamer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Timeout, IsTheDurationOfItsSeconds) {
  using namespace std::chrono_literals;
  EXPECT_EQ(duration_of(0), 0ns);
  EXPECT_EQ(duration_of(1.5), 1500ms);
  EXPECT_EQ(duration_of(1e9), 1'000'000'000s);
}

TEST(Timeout, TooLongForTheClockIsNoLimit) {
  for (const double seconds : {1e10, 1e300, kInfinity}) {
    EXPECT_EQ(duration_of(seconds), kNoLimitOfTime) << seconds;
    const auto now = std::chrono::steady_clock::now();
    EXPECT_GT(now + duration_of(seconds) + duration_of(seconds), now) << seconds;
  }
}

TEST(Timeout, NoNumberOfSecondsIsRefused) {
  for (const double seconds : {kNan, -1.0, -kInfinity}) {
    EXPECT_THROW(duration_of(seconds), std::invalid_argument) << seconds;
    EXPECT_THROW(check_timeout(seconds, "test"), std::invalid_argument) << seconds;
  }
  EXPECT_THROW(check_timeout(0, "test"), std::invalid_argument);
  EXPECT_NO_THROW(check_timeout(kInfinity, "test"));
}

}  // namespace
}  // namespace gossamer
