#include "gossamer/lab/run.h"

#include <cmath>

#include "gossamer/algo/optimizer.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/parallel.h"
#include "gossamer/lab/virtual_workers.h"

namespace gossamer {
namespace {

void check(const Problem& problem, const LabOptions& options) {
  if (options.schedule.shape.workers() != problem.workers()) {
    fail_argument({.place = "lab",
                   .what = "the schedule must be for the problem's " +
                           std::to_string(problem.workers()) + " workers",
                   .got = std::to_string(options.schedule.shape.workers())});
  }
  if (options.steps < 1 || options.record_every < 1) {
    fail_argument(
        {.place = "lab",
         .what = "steps and record_every must be 1 or more",
         .got = std::to_string(options.steps) + " and " + std::to_string(options.record_every)});
  }
  Hyper hyper = options.hyper;
  hyper.lr = options.step_size.first;
  check_hyper(hyper);
}

double squared_distance(const double* a, const double* b, std::size_t count) {
  double sum = 0;
  for (std::size_t k = 0; k < count; ++k) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

Point look(const Problem& problem, const std::vector<double>& minimiser, const LabOptions& options,
           VirtualWorkers& workers) {
  const std::span<const double> x = workers.x();
  const std::size_t d = minimiser.size();
  const std::size_t n = x.size() / d;
  const std::vector<double> mean = workers.mean();
  Point point{.step = workers.steps_done()};
  for (std::size_t i = 0; i < n; ++i) {
    point.error += squared_distance(&x[i * d], minimiser.data(), d);
    point.disagreement += squared_distance(&x[i * d], mean.data(), d);
  }
  point.error /= static_cast<double>(n);
  point.disagreement /= static_cast<double>(n);
  point.mean_error = squared_distance(mean.data(), minimiser.data(), d);
  if (options.records_loss) point.loss = problem.loss(mean);
  return point;
}

}  // namespace

double at(const StepSize& size, std::int64_t step) {
  double value = size.first;
  if (size.every > 0) value *= std::pow(size.factor, static_cast<double>(step / size.every));
  if (size.decay > 0) value /= 1 + static_cast<double>(step) / size.decay;
  return value;
}

std::vector<Point> run_lab(const Problem& problem, const std::vector<double>& minimiser,
                           const LabOptions& options) {
  check(problem, options);
  VirtualWorkers workers(options.schedule, options.pattern, options.optimizer, problem.dimension(),
                         options.hyper);
  std::vector<Point> points;
  Hyper hyper = options.hyper;
  for (std::int64_t t = 0; t < options.steps; ++t) {
    hyper.lr = at(options.step_size, t);
    const Draw draw{options.seed, t};
    problem.gradients(draw, workers.x(), workers.g());
    if (workers.wants_loss()) workers.agree_on(problem.drawn_loss(draw, workers.x()));
    workers.step(hyper);
    const bool is_last = t + 1 == options.steps;
    if (is_last || (t + 1) % options.record_every == 0) {
      points.push_back(look(problem, minimiser, options, workers));
    }
  }
  return points;
}

std::vector<std::vector<Point>> run_trials(const Problem& problem,
                                           const std::vector<double>& minimiser,
                                           const LabOptions& options, int trials, int threads) {
  std::vector<std::vector<Point>> all(static_cast<std::size_t>(trials));
  WorkerPool pool(threads);
  parallel_for(&pool, all.size(), [&](std::size_t trial) {
    LabOptions own = options;
    own.seed += trial;
    all[trial] = run_lab(problem, minimiser, own);
  });
  return all;
}

Curve curve_of(const std::vector<std::vector<Point>>& trials, double Point::*member) {
  Curve curve;
  const auto count = static_cast<double>(trials.size());
  for (std::size_t k = 0; !trials.empty() && k < trials[0].size(); ++k) {
    double mean = 0;
    for (const std::vector<Point>& trial : trials) mean += trial[k].*member / count;
    double squares = 0;
    for (const std::vector<Point>& trial : trials) {
      squares += (trial[k].*member - mean) * (trial[k].*member - mean);
    }
    curve.step.push_back(static_cast<double>(trials[0][k].step));
    curve.mean.push_back(mean);
    curve.error.push_back(count > 1 ? std::sqrt(squares / (count - 1) / count) : 0);
  }
  return curve;
}

}  // namespace gossamer
