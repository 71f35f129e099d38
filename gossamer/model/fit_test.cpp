#include "gossamer/model/fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace gossamer {
namespace {

FitProblem line(bool is_relative) {
  FitProblem problem{.name = "line",
                     .constants = {{"offset", 0.1, 100}, {"slope", 0.1, 100}},
                     .points = {},
                     .is_relative = is_relative};
  for (double x : {1.0, 2.0, 3.0, 5.0}) {
    problem.points.push_back(
        {"x", 7 + 0.6 * x, [x](std::span<const double> c) { return c[0] + c[1] * x; }});
  }
  return problem;
}

TEST(FitConstants, FindsWhatThePointsWereMadeFrom) {
  for (bool is_relative : {true, false}) {
    const Fit fit = fit_constants(line(is_relative));
    EXPECT_EQ(fit.constants[1].first, "slope");
    EXPECT_NEAR(fit.constants[0].second, 7, 0.02);
    EXPECT_NEAR(fit.constants[1].second, 0.6, 0.01);
    EXPECT_LT(fit.largest_residual(), 0.01);
  }
}

TEST(FitConstants, LeavesTheLeastSquaresWhereNothingFits) {
  FitProblem problem{
      .name = "mean", .constants = {{"c", 0.1, 100}}, .points = {}, .is_relative = false};
  for (double y : {1.0, 2.0, 6.0}) {
    problem.points.push_back({"y", y, [](std::span<const double> c) { return c[0]; }});
  }
  const Fit fit = fit_constants(problem);
  EXPECT_NEAR(fit.constants[0].second, 3, 0.002);
  EXPECT_NEAR(fit.points[2].residual, -3, 0.002);
  EXPECT_NEAR(fit.largest_residual(), 3, 0.002);
}

TEST(PredictedFromOthers, IsWhatTheOtherPointsSay) {
  FitProblem problem{
      .name = "mean", .constants = {{"c", 0.1, 100}}, .points = {}, .is_relative = false};
  for (double y : {1.0, 2.0, 6.0}) {
    problem.points.push_back({"y", y, [](std::span<const double> c) { return c[0]; }});
  }
  const std::vector<FittedPoint> predicted = predicted_from_others(problem);
  ASSERT_EQ(predicted.size(), 3U);
  EXPECT_NEAR(predicted[0].predicted, 4, 0.002);
  EXPECT_NEAR(predicted[1].predicted, 3.5, 0.002);
  EXPECT_NEAR(predicted[2].predicted, 1.5, 0.002);
  EXPECT_NEAR(predicted[2].residual, -4.5, 0.002);
  problem.points.resize(1);
  EXPECT_TRUE(predicted_from_others(problem).empty());
}

TEST(FitConstants, StaysInsideTheRange) {
  FitProblem problem = line(true);
  problem.constants[0].high = 5;
  const Fit fit = fit_constants(problem);
  EXPECT_LE(fit.constants[0].second, 5);
  EXPECT_GT(fit.constants[1].second, 0.6);
}

TEST(FitConstants, RefusesWhatCannotBeFitted) {
  FitProblem problem = line(true);
  problem.constants = {};
  EXPECT_THROW(fit_constants(problem), std::invalid_argument);
  problem.constants.assign(4, {"c", 1, 2});
  EXPECT_THROW(fit_constants(problem), std::invalid_argument);
  problem.constants = {{"offset", 0, 2}, {"slope", 1, 2}};
  EXPECT_THROW(fit_constants(problem), std::invalid_argument);
  problem.constants = {{"offset", 3, 2}, {"slope", 1, 2}};
  EXPECT_THROW(fit_constants(problem), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
