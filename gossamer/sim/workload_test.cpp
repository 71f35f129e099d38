#include "gossamer/sim/workload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace gossamer {
namespace {

SimWorkload one_second(ComputeKind kind, double sigma) {
  return {.buckets = {1}, .compute_s = 1, .compute = kind, .sigma = sigma};
}

TEST(ComputeTimes, HaveTheMeanAndDeviationAskedFor) {
  for (ComputeKind kind : {ComputeKind::normal, ComputeKind::lognormal}) {
    const SimWorkload workload = one_second(kind, 0.2);
    ComputeTimes times(workload, 3, 7);
    constexpr int kDraws = 200000;
    double sum = 0;
    double squares = 0;
    for (int k = 0; k < kDraws; ++k) {
      const double seconds = to_seconds(times.next());
      sum += seconds;
      squares += seconds * seconds;
    }
    const double mean = sum / kDraws;
    EXPECT_NEAR(mean, 1, 0.003);  // 6.7 standard errors
    EXPECT_NEAR(std::sqrt(squares / kDraws - mean * mean), 0.2, 0.003);
  }
}

TEST(ComputeTimes, AreNeverNegative) {
  const SimWorkload workload = one_second(ComputeKind::normal, 2);
  ComputeTimes times(workload, 0, 1);
  int zeros = 0;
  for (int k = 0; k < 1000; ++k) {
    const SimTime time = times.next();
    EXPECT_GE(time.count(), 0);
    zeros += time.count() == 0 ? 1 : 0;
  }
  EXPECT_GT(zeros, 200);  // P(N < −1/2) = .31
}

TEST(ComputeTimes, WorkersDifferAndRunsDoNot) {
  const SimWorkload workload = one_second(ComputeKind::lognormal, 0.3);
  ComputeTimes first(workload, 0, 5);
  ComputeTimes again(workload, 0, 5);
  ComputeTimes other(workload, 1, 5);
  const SimTime time = first.next();
  EXPECT_EQ(time, again.next());
  EXPECT_NE(time, other.next());
}

TEST(ComputeTimes, TracesBeginAgainAndFactorsCount) {
  SimWorkload workload{.buckets = {1}, .compute = ComputeKind::trace};
  workload.trace_s = {{1}, {0.25, 0.5}};
  workload.factors = {1, 2};
  check_workload(workload, 2);
  ComputeTimes times(workload, 1, 0);
  for (double seconds : {0.5, 1.0, 0.5, 1.0}) EXPECT_EQ(times.next(), nearest_ns(seconds));
}

TEST(Workload, MomentsFollowTheElements) {
  const SimWorkload workload{.buckets = {1, 3}, .forward_share = 0.25, .update_s = 1e-6};
  const ComputeMoments moments = moments_of(workload, SimTime(1600));
  EXPECT_EQ(moments.forward, SimTime(400));
  EXPECT_EQ(moments.backward, (std::vector{SimTime(700), SimTime(1600)}));
  EXPECT_EQ(update_time(workload, 0), SimTime(250));
  EXPECT_EQ(update_time(workload, 1), SimTime(750));
}

TEST(Workload, EvenBucketsCoverEverything) {
  EXPECT_EQ(even_buckets(10, 4), (std::vector<std::int64_t>{2, 3, 2, 3}));
  EXPECT_THROW(even_buckets(10, 0), std::invalid_argument);
}

TEST(Workload, WhatMakesNoSenseIsRefused) {
  const SimWorkload good{.buckets = {4}, .compute_s = 1};
  EXPECT_NO_THROW(check_workload(good, 3));
  const auto refused = [&](auto change) {
    SimWorkload bad = good;
    change(bad);
    EXPECT_THROW(check_workload(bad, 3), std::invalid_argument);
  };
  refused([](SimWorkload& w) { w.buckets.clear(); });
  refused([](SimWorkload& w) { w.buckets = {1, -1}; });
  refused([](SimWorkload& w) { w.compute_s = -1; });
  refused([](SimWorkload& w) { w.compute_s = std::nan(""); });
  refused([](SimWorkload& w) { w.forward_share = 1.5; });
  refused([](SimWorkload& w) { w.factors = {1, 1}; });
  refused([](SimWorkload& w) { w.compute = ComputeKind::trace; });
}

}  // namespace
}  // namespace gossamer
