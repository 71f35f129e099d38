// The MSE that constant step sizes leave on quadratics, measured and in closed form.
#include <cmath>
#include <numbers>

#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {
namespace {

constexpr int kWorkers = 8;
constexpr int kDimension = 300;  // independent copies of the same problem
constexpr double kPi = std::numbers::pi;

/// b_i = cos(2π i/8) in every element: all of it lies in the two modes of the ring that fall
/// slowest.
QuadraticSpec spec() {
  QuadraticSpec all{.dimension = kDimension, .noise = 1};
  for (int i = 0; i < kWorkers; ++i) {
    all.centres.insert(all.centres.end(), kDimension, std::cos(2 * kPi * i / kWorkers));
  }
  return all;
}

/// What a mode λ of W keeps of b and of the noise: E c² with b_λ = b.
double kept(bool is_atc, double mode, double lr, double b) {
  const double bias = is_atc ? mode * lr * b / (1 - mode * (1 - lr)) : lr * b / (1 - mode + lr);
  const double factor = is_atc ? mode * (1 - lr) : mode - lr;
  const double noise = is_atc ? mode * mode * lr * lr : lr * lr;
  return bias * bias + noise / (1 - factor * factor);
}

double closed_form(bool is_atc, double lr) {
  double sum = 0;
  for (int k = 0; k < kWorkers; ++k) {
    const double mode = 1. / 3 + 2. / 3 * std::cos(2 * kPi * k / kWorkers);
    const bool holds_b = k == 1 || k == kWorkers - 1;
    sum += kept(is_atc, mode, lr, holds_b ? std::sqrt(2.) : 0);
  }
  return sum / kWorkers;
}

double measured(const Problem& problem, const char* pattern, double lr, std::uint64_t seed) {
  const auto settled = static_cast<std::int64_t>(20 / lr);
  const LabOptions run{.schedule = topology_of("ring", kWorkers),
                       .pattern = pattern,
                       .step_size = {.first = lr},
                       .steps = settled + 1000,
                       .record_every = 10,
                       .seed = seed};
  double sum = 0;
  int count = 0;
  for (const Point& point : run_lab(problem, problem.minimiser(), run)) {
    if (point.step <= settled) continue;
    sum += point.error / kDimension;
    ++count;
  }
  return sum / count;
}

}  // namespace

Figure stationary_errors(const FigureOptions& options) {
  Figure figure{
      .text =
          "f_i(x) = ½ (x − b_i)² on a ring of 8, b_i = cos(2πi/8), gradients with normal noise of "
          "deviation 1: the MSE of an element that a constant step size leaves. Points are "
          "measured, dashed lines the closed forms: of a mode λ of W atc keeps "
          "(λαb/(1 − λ(1 − α)))² + λ²α²/(1 − λ²(1 − α)²), cwa (αb/(1 − λ + α))² + α²/(1 − (λ − "
          "α)²).",
      .header = {"pattern", "α", "measured", "closed form", "ratio"}};
  Chart chart{.title = "Stationary errors",
              .x = {.label = "step size α", .log = true},
              .y = {.label = "MSE per element", .log = true}};
  const auto problem = make_quadratic(spec());
  for (const char* pattern : {"atc", "cwa"}) {
    const bool is_atc = pattern == std::string("atc");
    Series points{.name = pattern, .points = true};
    Series line{.name = std::string(pattern) + ", closed form", .dashed = true, .like = pattern};
    for (double lr : {0.02, 0.05, 0.1, 0.2, 0.4}) {
      points.x.push_back(lr);
      points.y.push_back(measured(*problem, pattern, lr, options.seed));
      line.x.push_back(lr);
      line.y.push_back(closed_form(is_atc, lr));
      figure.rows.push_back({pattern, three_digits(lr), three_digits(points.y.back()),
                             three_digits(line.y.back()),
                             three_digits(points.y.back() / line.y.back())});
    }
    chart.series.push_back(points);
    chart.series.push_back(line);
  }
  figure.charts = {chart};
  return figure;
}

}  // namespace gossamer
