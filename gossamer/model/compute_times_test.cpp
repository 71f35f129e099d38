#include "gossamer/model/compute_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace gossamer {
namespace {

TEST(ComputeTimes, JitterHasTheMeanAndTheDeviation) {
  for (Jitter jitter : {Jitter::normal, Jitter::lognormal}) {
    const ComputeTimes times{.jitter = jitter, .mean_s = 2, .deviation_s = 0.3, .seed = 5};
    constexpr int kSamples = 20000;
    double sum = 0;
    double squares = 0;
    for (int k = 0; k < kSamples; ++k) {
      const double c = compute_s(times, k % 7, k / 7);
      sum += c;
      squares += (c - 2) * (c - 2);
    }
    // Four standard errors: .3/√20000 of the mean, about .7 % of the deviation.
    EXPECT_NEAR(sum / kSamples, 2, 0.0085);
    EXPECT_NEAR(std::sqrt(squares / kSamples), 0.3, 0.0085);
  }
}

TEST(ComputeTimes, ArePureAndDifferByWorkerStepAndSeed) {
  ComputeTimes times{.jitter = Jitter::normal, .deviation_s = 0.1, .seed = 1};
  const double first = compute_s(times, 3, 4);
  EXPECT_EQ(compute_s(times, 3, 4), first);
  EXPECT_NE(compute_s(times, 4, 3), first);
  EXPECT_NE(compute_s(times, 3, 5), first);
  times.seed = 2;
  EXPECT_NE(compute_s(times, 3, 4), first);
}

TEST(ComputeTimes, NormalIsCutOffAtZero) {
  const ComputeTimes times{.jitter = Jitter::normal, .mean_s = 0, .deviation_s = 1};
  for (int t = 0; t < 100; ++t) EXPECT_GE(compute_s(times, 0, t), 0) << t;
}

TEST(ComputeTimes, TraceRepeatsAndFactorsMultiply) {
  ComputeTimes times{.jitter = Jitter::trace, .factors = {1, 2}, .trace = {{1, 3}, {5}}};
  check_compute_times(times, 2);
  EXPECT_EQ(compute_s(times, 0, 0), 1);
  EXPECT_EQ(compute_s(times, 0, 5), 3);
  EXPECT_EQ(compute_s(times, 1, 9), 10);
  times.trace = {{4, 6}};
  check_compute_times(times, 2);
  EXPECT_EQ(compute_s(times, 1, 1), 12);
}

TEST(ComputeTimes, RefuseWhatMakesNoSense) {
  EXPECT_THROW(check_compute_times({.mean_s = -1}, 1), std::invalid_argument);
  EXPECT_THROW(check_compute_times({.mean_s = std::numeric_limits<double>::infinity()}, 1),
               std::invalid_argument);
  EXPECT_THROW(check_compute_times({.deviation_s = -1}, 1), std::invalid_argument);
  EXPECT_THROW(check_compute_times({.jitter = Jitter::lognormal, .mean_s = 0}, 1),
               std::invalid_argument);
  EXPECT_THROW(check_compute_times({.factors = {1}}, 2), std::invalid_argument);
  EXPECT_THROW(check_compute_times({.factors = {1, -1}}, 2), std::invalid_argument);
  EXPECT_THROW(check_compute_times({.jitter = Jitter::trace}, 2), std::invalid_argument);
  EXPECT_THROW(check_compute_times({.jitter = Jitter::trace, .trace = {{}}}, 2),
               std::invalid_argument);
  EXPECT_THROW(check_compute_times({.jitter = Jitter::trace, .trace = {{1}, {1}, {1}}}, 2),
               std::invalid_argument);
}

// Of few steps: what is above the mean is taken off, worker by worker.
TEST(ComputeTimes, WhatWasDrawnAboveTheMean) {
  ComputeTimes times{.jitter = Jitter::normal, .mean_s = 1, .deviation_s = 0.1};
  times.factors = {1, 2};
  double sum = 0;
  for (int w = 0; w < 2; ++w) {
    for (std::int64_t t = 3; t < 7; ++t) sum += compute_s(times, w, t);
  }
  EXPECT_NEAR(drawn_more_s(times, 2, 3, 7), sum / 8 - 1.5, 1e-12);
  EXPECT_NE(drawn_more_s(times, 2, 3, 7), 0);
  EXPECT_EQ(drawn_more_s({.mean_s = 3}, 2, 0, 9), 0);
  EXPECT_EQ(drawn_more_s(times, 2, 3, 3), 0);
}

}  // namespace
}  // namespace gossamer
