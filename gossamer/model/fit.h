#pragma once
/// Fits a few constants of a prediction to measured points, without randomness.

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace gossamer {

/// A positive constant, and between which values it is looked for.
struct FitConstant {
  std::string name;
  double low = 0;
  double high = 0;
};

/// A measured value and what predicts it from the constants, in their order.
struct FitPoint {
  std::string name;
  double measured = 0;
  std::function<double(std::span<const double>)> predict;
};

struct FitProblem {
  std::string name;
  std::vector<FitConstant> constants;  ///< up to three
  std::vector<FitPoint> points;
  bool is_relative = true;  ///< residuals are predicted/measured − 1, else predicted − measured
};

struct FittedPoint {
  std::string name;
  double measured = 0;
  double predicted = 0;
  double residual = 0;
};

struct Fit {
  std::string name;
  std::vector<std::pair<std::string, double>> constants;
  std::vector<FittedPoint> points;

  double largest_residual() const;  ///< its absolute value
};

/// Least squares of the residuals: the best of a coarse grid (logarithmic, 7 values for each
/// constant), then a compass search from there until its steps are below 1e-4 of a constant. Equal
/// problems give equal fits. Throws std::invalid_argument for no constant, for more than three, and
/// for ranges that are not positive.
Fit fit_constants(const FitProblem& problem);

/// For each point what the model says of it with constants that are fitted to all others: a
/// prediction. Empty where the others are fewer than the constants.
std::vector<FittedPoint> predicted_from_others(const FitProblem& problem);

}  // namespace gossamer
