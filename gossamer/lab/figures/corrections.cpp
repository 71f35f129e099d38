// Exact-Diffusion, EXTRA and gradient tracking against D-SGD where the workers' data differ.
#include <Eigen/Dense>
#include <cmath>

#include "gossamer/graph/modifiers.h"
#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {
namespace {

struct Method {
  const char* name;
  const char* pattern;
};

constexpr Method kMethods[] = {{"parallel SGD", "allreduce"},
                               {"D-SGD", "atc"},
                               {"Exact-Diffusion", "exact_diffusion"},
                               {"EXTRA", "extra"},
                               {"gradient tracking", "gradient_tracking"}};

/// The corrections run with (I + W)/2, which the first of them needs on even rings.
std::vector<Contender> contenders_of(const LabOptions& options) {
  std::vector<Contender> all;
  for (const Method& method : kMethods) {
    all.push_back({method.name, options});
    all.back().options.pattern = method.pattern;
    const bool is_correction = all.size() > 2;
    if (is_correction) all.back().options.schedule = lazy(options.schedule);
  }
  return all;
}

/// Where D-SGD stalls on a problem whose gradients are affine in x: the solution of x = W (x − α
/// g(x)), as mean ‖x_i − x*‖².
double stalled_error(const Problem& problem, const std::vector<double>& minimiser,
                     const LabOptions& run) {
  const auto size = static_cast<Eigen::Index>(problem.size());
  const auto d = static_cast<Eigen::Index>(problem.dimension());
  Eigen::VectorXd x = Eigen::VectorXd::Zero(size);
  Eigen::VectorXd at_zero(size);
  const auto gradient = [&](Eigen::VectorXd& g) {
    problem.gradients({}, {x.data(), problem.size()}, {g.data(), problem.size()});
  };
  gradient(at_zero);
  Eigen::MatrixXd step = Eigen::MatrixXd::Identity(size, size);  // x − α (g(x) − g(0))
  for (Eigen::Index k = 0; k < size; ++k) {
    Eigen::VectorXd g(size);
    x[k] = 1;
    gradient(g);
    x[k] = 0;
    step.col(k) -= run.step_size.first * (g - at_zero);
  }
  const Round round = round_at(run.schedule, 0);
  Eigen::MatrixXd w = Eigen::MatrixXd::Zero(size, size);
  for (int i = 0; i < problem.workers(); ++i) {
    for (const Entry& entry : row_of(round, i)) {
      for (Eigen::Index k = 0; k < d; ++k) w(i * d + k, entry.worker * d + k) = entry.weight;
    }
  }
  const Eigen::MatrixXd system = Eigen::MatrixXd::Identity(size, size) - w * step;
  x = system.partialPivLu().solve(-run.step_size.first * (w * at_zero));
  double sum = 0;
  for (Eigen::Index k = 0; k < size; ++k) {
    const double left = x[k] - minimiser[static_cast<std::size_t>(k % d)];
    sum += left * left;
  }
  return sum / problem.workers();
}

}  // namespace

Figure corrections_logistic(const FigureOptions& options) {
  constexpr int kWorkers = 50;
  const auto problem = make_logistic(logistic_spec(kWorkers));
  const LabOptions run{.schedule = topology_of("ring", kWorkers),
                       .step_size = kHalved,
                       .steps = 7500,
                       .record_every = 50,
                       .seed = options.seed};
  const auto outcomes =
      compare(*problem, problem->minimiser(), contenders_of(run), repeats_of(options, 4));
  return {
      .text =
          "Logistic regression, every worker with data of its own, one sample per worker and step, "
          "a ring of 50 (for the corrections (I + W)/2), α = .2 halved every 1000 steps.",
      .charts = {chart_of("Unequal data: logistic regression", outcomes, &Point::error, "MSE")},
      .header = kFinalHeader,
      .rows = final_rows(outcomes)};
}

Figure corrections_least_squares(const FigureOptions& options) {
  constexpr int kWorkers = 20;
  Figure figure{
      .text =
          "Least squares, every worker with data of its own, a ring of 20 (for the corrections "
          "(I + W)/2), α = .05 throughout. Left all samples in every step, without noise: D-SGD "
          "stalls at its bias, the corrections go on to the minimiser. Right one sample per "
          "worker and step, where noise adds to it.",
      .header = {"method", "samples", "√MSE", "predicted"}};
  for (int batch : {0, 1}) {
    const auto problem = make_least_squares({.workers = kWorkers,
                                             .dimension = 10,
                                             .samples = 50,
                                             .batch = batch,
                                             .heterogeneity = 1,
                                             .noise = 0.1});
    const std::vector<double> minimiser = problem->minimiser();
    const LabOptions run{.schedule = topology_of("ring", kWorkers),
                         .step_size = {.first = 0.05},
                         .steps = 8000,
                         .record_every = 20,
                         .seed = options.seed};
    Repeats repeats = repeats_of(options, 4);
    if (batch == 0) repeats.trials = 1;
    const auto outcomes = compare(*problem, minimiser, contenders_of(run), repeats);
    const std::string kind = batch == 0 ? "all samples" : "one sample";
    for (const Outcome& outcome : outcomes) {
      const bool stalls = batch == 0 && outcome.name == "D-SGD";
      figure.rows.push_back(
          {outcome.name, batch == 0 ? "all" : "1",
           three_digits(std::sqrt(last_of(outcome, &Point::error).mean)),
           stalls ? three_digits(std::sqrt(stalled_error(*problem, minimiser, run))) : ""});
    }
    figure.charts.push_back(chart_of(kind, outcomes, &Point::error, "MSE"));
  }
  return figure;
}

}  // namespace gossamer
