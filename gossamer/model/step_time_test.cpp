#include "gossamer/model/step_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

namespace gossamer {
namespace {

TEST(ClosedForms, WorkedByHand) {
  const StepRatios ratios{.gamma = 2, .omega = 0.75, .buckets = 4, .forward_share = 0.2};
  // First bucket ready at .2 + .2, then 2 on the link, against 1 + .5.
  EXPECT_DOUBLE_EQ(allreduce_time(ratios), 2.4);
  EXPECT_DOUBLE_EQ(decentralized_time(ratios), 1.5);
  EXPECT_DOUBLE_EQ(speed_up(ratios), 1 - 1.5 / 2.4);
  // A worker that takes twice as long moves only the first gradient: .8 + 2 against 2 + .5.
  EXPECT_DOUBLE_EQ(allreduce_time(ratios, 2), 2.8);
}

TEST(ClosedForms, WithoutCommunicationThereIsNothingToGain) {
  for (int buckets : {1, 3, 100}) {
    EXPECT_DOUBLE_EQ(allreduce_time({.gamma = 0, .buckets = buckets}), 1);
    EXPECT_DOUBLE_EQ(speed_up({.gamma = 0, .buckets = buckets}), 0);
  }
}

TEST(ClosedForms, OneBucketOverlapsWithNothing) {
  for (double phi : {0.0, 0.3, 1.0}) {
    EXPECT_DOUBLE_EQ(allreduce_time({.gamma = 0.7, .forward_share = phi}), 1.7) << phi;
  }
}

TEST(ClosedForms, ManyBucketsLeaveMaxOfOneAndForwardPlusGamma) {
  for (double gamma : {0.1, 0.6, 0.7, 3.0}) {
    const StepRatios ratios{.gamma = gamma, .buckets = 1'000'000'000};
    EXPECT_NEAR(allreduce_time(ratios), std::max(1.0, 1.0 / 3 + gamma), 1e-8) << gamma;
  }
}

TEST(ClosedForms, RefuseWhatMakesNoSense) {
  EXPECT_THROW(allreduce_time({.gamma = -1}), std::invalid_argument);
  EXPECT_THROW(allreduce_time({.gamma = std::nan("")}), std::invalid_argument);
  EXPECT_THROW(allreduce_time({.buckets = 0}), std::invalid_argument);
  EXPECT_THROW(decentralized_time({.omega = -0.1}), std::invalid_argument);
  EXPECT_THROW(speed_up({.forward_share = 1.1}), std::invalid_argument);
  EXPECT_THROW(expected_maximum_of_normals(0), std::invalid_argument);
  EXPECT_THROW(allreduce_time_with_stragglers({}, -0.1, 2), std::invalid_argument);
}

TEST(ExpectedMaximumOfNormals, ClosedFormsOfUpToFive) {
  const double pi = std::numbers::pi;
  EXPECT_EQ(expected_maximum_of_normals(1), 0);
  EXPECT_NEAR(expected_maximum_of_normals(2), 1 / std::sqrt(pi), 1e-12);
  EXPECT_NEAR(expected_maximum_of_normals(3), 1.5 / std::sqrt(pi), 1e-12);
  const double four = 3 / std::sqrt(pi) * (0.5 + std::asin(1.0 / 3) / pi);
  EXPECT_NEAR(expected_maximum_of_normals(4), four, 1e-12);
  const double five = 2.5 / std::sqrt(pi) * (0.5 + 3 * std::asin(1.0 / 3) / pi);
  EXPECT_NEAR(expected_maximum_of_normals(5), five, 1e-12);
}

TEST(ExpectedMaximumOfNormals, TabulatedValues) {
  EXPECT_NEAR(expected_maximum_of_normals(8), 1.424, 5e-4);
  EXPECT_NEAR(expected_maximum_of_normals(16), 1.766, 5e-4);
  EXPECT_NEAR(expected_maximum_of_normals(32), 2.070, 5e-4);
}

TEST(ExpectedMaximumOfNormals, GrowsLikeItsAsymptoteForHugeNumbers) {
  // The Gumbel limit: a_n + γ_Euler/√(2 ln n), up to O(1/ln n) of that.
  const int n = std::numeric_limits<int>::max();
  const double root = std::sqrt(2 * std::log(n));
  const double a = root - (std::log(std::log(n)) + std::log(4 * std::numbers::pi)) / (2 * root);
  EXPECT_NEAR(expected_maximum_of_normals(n), a + std::numbers::egamma / root, 0.02);
  double before = 0;
  for (int k = 2; k < 200; ++k) {
    const double kappa = expected_maximum_of_normals(k);
    EXPECT_GT(kappa, before) << k;
    before = kappa;
  }
}

TEST(Stragglers, AddSigmaKappa) {
  const StepRatios ratios{.gamma = 0.1, .buckets = 5};
  EXPECT_NEAR(allreduce_time_with_stragglers(ratios, 0.1, 2),
              1.02 + 0.1 / std::sqrt(std::numbers::pi), 1e-12);
  // The same as the slowest worker's compute time, as long as computing is what takes the time.
  const double kappa = expected_maximum_of_normals(16);
  EXPECT_NEAR(allreduce_time_with_stragglers(ratios, 0.1, 16),
              allreduce_time(ratios, 1 + 0.1 * kappa), 1e-12);
}

TEST(ClosedStepTimes, MoveTheSlowestAndLeaveNeighboursAlone) {
  const StepRatios ratios{.gamma = 2, .omega = 0.75, .buckets = 4, .forward_share = 0.2};
  // Two workers, σ = √π: the slowest computes for 2, of which .8 come before the first bucket.
  const StepPair pair = closed_step_times(ratios, std::sqrt(std::numbers::pi), 2);
  EXPECT_NEAR(pair.allreduce, 2.8, 1e-12);
  EXPECT_DOUBLE_EQ(pair.decentralized, 1.5);
  EXPECT_NEAR(pair.speed_up(), 1 - 1.5 / 2.8, 1e-12);
  EXPECT_THROW(closed_step_times(ratios, -1, 2), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
