#include "gossamer/lab/transient.h"

#include <cmath>
#include <limits>

#include "gossamer/base/errors.h"
#include "gossamer/lab/comparison.h"

namespace gossamer {
namespace {

constexpr std::int64_t kFirstLength = 400;
constexpr std::int64_t kRecords = 200;

std::unique_ptr<const Problem> problem_of(const TransientSpec& spec) {
  const SyntheticSpec data{.workers = spec.schedule.shape.workers(),
                           .dimension = 10,
                           .samples = 1000,
                           .heterogeneity = spec.heterogeneity,
                           .noise = 1};
  return spec.problem == TransientProblem::logistic ? make_logistic(data)
                                                    : make_least_squares(data);
}

/// α_t = c/(t₀ + t).
StepSize step_size_of(TransientProblem problem) {
  if (problem == TransientProblem::logistic) return {.first = 0.2, .decay = 100};
  return {.first = 0.1, .decay = 10};
}

/// The first recorded step from which on the second curve is at most `factor` times the first.
std::int64_t settled_at(const Curve& parallel, const Curve& method, double factor) {
  std::size_t from = method.mean.size();
  while (from > 0 && method.mean[from - 1] <= factor * parallel.mean[from - 1]) --from;
  const bool never = from == method.mean.size();
  return never ? std::numeric_limits<std::int64_t>::max()
               : static_cast<std::int64_t>(method.step[from]);
}

}  // namespace

std::optional<std::int64_t> transient_steps(const TransientSpec& spec) {
  if (!(spec.factor > 1)) {
    fail_argument({.place = "lab transient",
                   .what = "the factor must be above 1",
                   .got = std::to_string(spec.factor)});
  }
  const auto problem = problem_of(spec);
  const std::vector<double> minimiser = problem->minimiser();
  for (std::int64_t length = kFirstLength; length <= spec.most_steps; length *= 2) {
    LabOptions run{.schedule = spec.schedule,
                   .pattern = spec.pattern,
                   .step_size = step_size_of(spec.problem),
                   .steps = length,
                   .record_every = length / kRecords,
                   .seed = spec.seed};
    LabOptions parallel = run;
    parallel.pattern = "allreduce";
    const auto outcomes = compare(*problem, minimiser, {{"parallel", parallel}, {"method", run}},
                                  {.trials = spec.trials, .threads = spec.threads});
    const std::int64_t steps = settled_at(curve_of(outcomes[0].trials, &Point::error),
                                          curve_of(outcomes[1].trials, &Point::error), spec.factor);
    if (steps <= length / 2) return steps;
  }
  return std::nullopt;
}

double growth_exponent(const std::vector<double>& x, const std::vector<double>& y) {
  const auto count = static_cast<double>(x.size());
  if (x.size() < 2) return std::numeric_limits<double>::quiet_NaN();
  double mean_x = 0;
  double mean_y = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    mean_x += std::log(x[k]) / count;
    mean_y += std::log(y[k]) / count;
  }
  double xy = 0;
  double xx = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    xy += (std::log(x[k]) - mean_x) * (std::log(y[k]) - mean_y);
    xx += (std::log(x[k]) - mean_x) * (std::log(x[k]) - mean_x);
  }
  return xy / xx;
}

}  // namespace gossamer
