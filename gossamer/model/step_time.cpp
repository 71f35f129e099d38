#include "gossamer/model/step_time.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

void check(const StepRatios& ratios) {
  check_argument("model", ratios.gamma >= 0, "gamma must not be negative",
                 std::to_string(ratios.gamma));
  check_argument("model", ratios.omega >= 0, "omega must not be negative",
                 std::to_string(ratios.omega));
  check_argument("model", ratios.buckets >= 1, "there must be at least 1 bucket",
                 std::to_string(ratios.buckets));
  check_argument("model", ratios.forward_share >= 0 && ratios.forward_share <= 1,
                 "the forward share must lie between 0 and 1",
                 std::to_string(ratios.forward_share));
}

/// The density of the maximum of n standard normals: n φ(x) Φ(x)^(n−1).
double density_of_maximum(double x, int n) {
  const double above = 0.5 * std::erfc(x / std::numbers::sqrt2);
  const double below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  // Close to 1 the logarithm of Φ is exact only as a function of 1 − Φ.
  const double log_below = x > 0 ? std::log1p(-above) : std::log(below);
  const double log_phi = -0.5 * x * x - 0.5 * std::log(2 * std::numbers::pi);
  return n * std::exp(log_phi + (n - 1) * log_below);
}

}  // namespace

double allreduce_time(const StepRatios& ratios) { return allreduce_time(ratios, 1); }

double allreduce_time(const StepRatios& ratios, double slowest) {
  check(ratios);
  check_argument("model", slowest >= 0, "a compute time must not be negative",
                 std::to_string(slowest));
  const double before_first = ratios.forward_share + (1 - ratios.forward_share) / ratios.buckets;
  return std::max(slowest + ratios.gamma / ratios.buckets, slowest * before_first + ratios.gamma);
}

double decentralized_time(const StepRatios& ratios) {
  check(ratios);
  return std::max(1.0, ratios.omega * ratios.gamma);
}

double speed_up(const StepRatios& ratios) {
  return 1 - decentralized_time(ratios) / allreduce_time(ratios);
}

double expected_maximum_of_normals(int n) {
  check_argument("model", n >= 1, "there must be at least 1 normal", std::to_string(n));
  if (n == 1) return 0;
  // The integrand is smooth and falls like a normal density at both ends, so that the trapezoidal
  // rule converges faster than any power of the step.
  constexpr double kStep = 1.0 / 64;
  const double last = std::sqrt(2 * std::log(n)) + 10;
  double sum = 0;
  for (double x = -10; x <= last; x += kStep) sum += x * density_of_maximum(x, n);
  return sum * kStep;
}

double allreduce_time_with_stragglers(const StepRatios& ratios, double sigma, int workers) {
  check_argument("model", sigma >= 0, "sigma must not be negative", std::to_string(sigma));
  return allreduce_time(ratios) + sigma * expected_maximum_of_normals(workers);
}

StepPair closed_step_times(const StepRatios& ratios, double sigma, int workers) {
  check_argument("model", sigma >= 0, "sigma must not be negative", std::to_string(sigma));
  return {.allreduce = allreduce_time(ratios, 1 + sigma * expected_maximum_of_normals(workers)),
          .decentralized = decentralized_time(ratios)};
}

}  // namespace gossamer
