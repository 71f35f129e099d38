#include "gossamer/model/fit.h"

#include <algorithm>
#include <cmath>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr int kGridValues = 7;
constexpr double kSmallestStep = 1e-4;
using Values = std::vector<double>;

void check(const FitProblem& problem) {
  const std::size_t constants = problem.constants.size();
  if (constants < 1 || constants > 3) {
    fail_argument({.place = "fit",
                   .what = "one to three constants can be fitted",
                   .got = std::to_string(constants)});
  }
  for (const FitConstant& constant : problem.constants) {
    if (constant.low > 0 && constant.low <= constant.high && std::isfinite(constant.high)) continue;
    fail_argument({.place = "fit",
                   .what = "the range of " + constant.name + " must be positive and ascending",
                   .got = std::to_string(constant.low) + " to " + std::to_string(constant.high)});
  }
}

double residual(const FitProblem& problem, double predicted, double measured) {
  return problem.is_relative ? predicted / measured - 1 : predicted - measured;
}

double sum_of_squares(const FitProblem& problem, const Values& values) {
  double sum = 0;
  for (const FitPoint& point : problem.points) {
    sum += std::pow(residual(problem, point.predict(values), point.measured), 2);
  }
  return sum;
}

struct Best {
  Values values;
  double squares = 0;

  bool take_if_better(const FitProblem& problem, const Values& candidate) {
    const double candidate_squares = sum_of_squares(problem, candidate);
    if (!values.empty() && !(candidate_squares < squares)) return false;
    values = candidate;
    squares = candidate_squares;
    return true;
  }
};

/// In how many ways every constant can take one of so many values.
int combinations(const FitProblem& problem, int values) {
  int count = 1;
  for (std::size_t k = 0; k < problem.constants.size(); ++k) count *= values;
  return count;
}

Best best_of_grid(const FitProblem& problem) {
  Best best;
  const int cells = combinations(problem, kGridValues);
  for (int cell = 0; cell < cells; ++cell) {
    Values values;
    int rest = cell;
    for (const FitConstant& constant : problem.constants) {
      const double share = static_cast<double>(rest % kGridValues) / (kGridValues - 1);
      values.push_back(constant.low * std::pow(constant.high / constant.low, share));
      rest /= kGridValues;
    }
    best.take_if_better(problem, values);
  }
  return best;
}

/// Moves some constants a factor up and some down, in every combination, since the best values
/// often lie along a valley; where nothing helps the factor shrinks.
void compass_search(const FitProblem& problem, Best& best) {
  const int directions = combinations(problem, 3);
  for (double step = 0.25; step > kSmallestStep;) {
    bool is_better = false;
    for (int direction = 0; direction < directions; ++direction) {
      Values candidate = best.values;
      int rest = direction;
      for (std::size_t k = 0; k < candidate.size(); ++k) {
        const FitConstant& constant = problem.constants[k];
        const double moved = candidate[k] * std::pow(1 + step, rest % 3 - 1);
        candidate[k] = std::clamp(moved, constant.low, constant.high);
        rest /= 3;
      }
      if (candidate != best.values) is_better |= best.take_if_better(problem, candidate);
    }
    if (!is_better) step /= 2;
  }
}

FittedPoint at_point(const FitProblem& problem, const FitPoint& point, const Values& values) {
  const double predicted = point.predict(values);
  return {point.name, point.measured, predicted, residual(problem, predicted, point.measured)};
}

Values best_values(const FitProblem& problem) {
  Best best = best_of_grid(problem);
  compass_search(problem, best);
  return best.values;
}

}  // namespace

double Fit::largest_residual() const {
  double largest = 0;
  for (const FittedPoint& point : points) largest = std::max(largest, std::abs(point.residual));
  return largest;
}

Fit fit_constants(const FitProblem& problem) {
  check(problem);
  const Values values = best_values(problem);
  Fit fit{.name = problem.name, .constants = {}, .points = {}};
  for (std::size_t k = 0; k < problem.constants.size(); ++k) {
    fit.constants.emplace_back(problem.constants[k].name, values[k]);
  }
  for (const FitPoint& point : problem.points) {
    fit.points.push_back(at_point(problem, point, values));
  }
  return fit;
}

std::vector<FittedPoint> predicted_from_others(const FitProblem& problem) {
  check(problem);
  std::vector<FittedPoint> predicted;
  if (problem.points.size() <= problem.constants.size()) return predicted;
  for (std::size_t k = 0; k < problem.points.size(); ++k) {
    FitProblem others = problem;
    others.points.erase(others.points.begin() + static_cast<std::ptrdiff_t>(k));
    predicted.push_back(at_point(problem, problem.points[k], best_values(others)));
  }
  return predicted;
}

}  // namespace gossamer
