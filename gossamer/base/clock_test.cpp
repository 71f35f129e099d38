#include "gossamer/base/clock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace gossamer {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

/// How long both clocks say that a child took, which is stopped for four seconds meanwhile, and how
/// long ago that was in its end.
struct Took {
  double own;
  double system;
  double since_standstill;
};

Took of_a_stopped_child(bool is_watched) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::unique_ptr<StandstillWatch> watch;
    if (is_watched) watch = std::make_unique<StandstillWatch>();
    const auto own = Clock::now();
    const auto system = Steady::now();
    while (Steady::now() < system + 4s) std::this_thread::sleep_for(10ms);
    const Deadline went_on = Clock::after_standstill();
    const Deadline end = Clock::now();
    const Took took = {std::chrono::duration<double>(end - own).count(),
                       std::chrono::duration<double>(Steady::now() - system).count(),
                       std::chrono::duration<double>(end - went_on).count()};
    [[maybe_unused]] const auto written = ::write(ends[1], &took, sizeof(took));
    ::_exit(0);
  }
  std::this_thread::sleep_for(200ms);
  ::kill(child, SIGSTOP);
  std::this_thread::sleep_for(4s);
  ::kill(child, SIGCONT);
  Took took = {};
  EXPECT_EQ(::read(ends[0], &took, sizeof(took)), static_cast<ssize_t>(sizeof(took)));
  for (const int end : ends) ::close(end);
  ::waitpid(child, nullptr, 0);
  return took;
}

TEST(Clock, LeavesOutTheTimeInWhichTheProcessStoodStill) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "threads after a fork are not for this sanitizer";
#endif
  const auto [own, system, since_standstill] = of_a_stopped_child(true);
  EXPECT_GE(system, 4.0);
  EXPECT_LT(own, system - 2.5);
  EXPECT_GT(own, 0.1);
  EXPECT_LE(since_standstill, own);
}

TEST(Clock, IsTheSystemsWhereNobodyWatches) {
  const auto [own, system, since_standstill] = of_a_stopped_child(false);
  EXPECT_NEAR(own, system, 0.5);
  EXPECT_GT(since_standstill, system);  // there was none that it knows of
}

TEST(Clock, GoesOnWithTheSystemsWhileItIsWatched) {
  const StandstillWatch one;
  const StandstillWatch another;
  const auto own = Clock::now();
  const auto system = Steady::now();
  std::this_thread::sleep_for(1200ms);
  const auto apart = (Clock::now() - own) - (Steady::now() - system);
  EXPECT_LT(std::chrono::abs(apart), 100ms);
}

}  // namespace
}  // namespace gossamer
