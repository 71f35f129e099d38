// The largest stable step sizes of atc and cwa on a quadratic.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {
namespace {

constexpr int kWorkers = 8;
constexpr int kSteps = 400;
constexpr double kDiverged = 1e6;
constexpr double kArrived = 1e-9;  // what rounding leaves below it says nothing

/// The root mean square distance to the minimiser after kSteps at this α, started unequal.
double left_over(const Problem& problem, const LabOptions& base, double lr) {
  LabOptions run = base;
  run.step_size.first = lr;
  run.steps = run.record_every = kSteps;
  const double error = run_lab(problem, problem.minimiser(), run).back().error;
  return std::isfinite(error) ? std::clamp(std::sqrt(error), kArrived, kDiverged) : kDiverged;
}

/// Where it begins to diverge, to 1e-3.
double limit_of(const Problem& problem, const LabOptions& base) {
  double stable = 0;
  double unstable = 4;
  while (unstable - stable > 1e-3) {
    const double middle = (stable + unstable) / 2;
    (left_over(problem, base, middle) < 10 ? stable : unstable) = middle;
  }
  return stable;
}

}  // namespace

Figure step_size_limits(const FigureOptions&) {
  QuadraticSpec spec{.dimension = 1};
  for (int i = 0; i < kWorkers; ++i) {
    spec.centres.push_back(i % 2 == 0 ? 2 : -1);  // has a part in the least eigenvector
  }
  const auto problem = make_quadratic(spec);
  Figure figure{
      .text =
          "f_i(x) = ½ (x − b_i)², so L = 1, n = 8. atc is stable up to α = 2/L on every graph; "
          "cwa up to (1 + λ_n)/L with λ_n the least eigenvalue of W: on the complete graph, where "
          "it is 0, half of what all-reduce can do.",
      .header = {"method", "limit", "measured", "closed form"}};
  struct Row {
    const char* pattern;
    const char* topology;
    const char* formula;
    double limit;
  };
  for (const Row& row : {Row{"atc", "ring", "2/L", 2}, Row{"atc", "complete", "2/L", 2},
                         Row{"cwa", "ring", "(1 + λ_n)/L, λ_n = −⅓", 2. / 3},
                         Row{"cwa", "complete", "(1 + λ_n)/L, λ_n = 0", 1}}) {
    const LabOptions base{.schedule = topology_of(row.topology, kWorkers), .pattern = row.pattern};
    const std::string name = std::string(row.pattern) + ", " + row.topology;
    figure.rows.push_back(
        {name, row.formula, three_digits(limit_of(*problem, base)), three_digits(row.limit)});
    Series series{.name = name};
    for (double lr = 0.06; lr < 2.2; lr += 0.025) {
      series.x.push_back(lr);
      series.y.push_back(left_over(*problem, base, lr));
    }
    if (figure.charts.empty()) {
      figure.charts.push_back(
          {.title = "Step-size limits",
           .caption = "Dashed: the closed forms.",
           .x = {.label = "step size α"},
           .y = {.label = "√MSE after 400 steps, from 10⁻⁹ to 10⁶", .log = true}});
    }
    figure.charts[0].series.push_back(series);
    figure.charts[0].series.push_back(
        {.x = {row.limit, row.limit}, .y = {kArrived, kDiverged}, .dashed = true, .like = name});
  }
  return figure;
}

}  // namespace gossamer
