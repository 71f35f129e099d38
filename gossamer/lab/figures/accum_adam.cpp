// AccumAdam against Adam where each worker's batch is small.
#include <cmath>

#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {
namespace {

constexpr int kWorkers = 16;
constexpr double kRates[] = {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5};

struct Method {
  const char* name;
  const char* pattern;
  int accumulate;  ///< 0: Adam
};

constexpr Method kMethods[] = {{"all-reduce, Adam", "allreduce", 0},
                               {"ring, Adam", "cwa", 0},
                               {"ring, AccumAdam, s = 4", "cwa", 4},
                               {"ring, AccumAdam, s = 16", "cwa", 16}};

LabOptions run_of(const Method& method, double lr, const FigureOptions& options) {
  LabOptions run{.schedule = topology_of("ring", kWorkers),
                 .pattern = method.pattern,
                 .optimizer = method.accumulate > 0 ? "accum_adam" : "adam",
                 .step_size = {.first = lr, .factor = 0.5, .every = 250},
                 .steps = 1500,
                 .record_every = 1500,
                 .seed = options.seed};
  if (method.accumulate > 0) {
    // The moments forget as fast, counted in steps.
    run.hyper.accumulate = method.accumulate;
    run.hyper.beta1 = std::pow(run.hyper.beta1, method.accumulate);
    run.hyper.beta2 = std::pow(run.hyper.beta2, method.accumulate);
  }
  return run;
}

}  // namespace

Figure accum_adam(const FigureOptions& options) {
  Figure figure{
      .text =
          "Logistic regression on a ring of 16, the same distribution for all workers, batches of "
          "one and of 64 samples per worker; MSE after 1500 steps against α, which is halved every "
          "250 steps. AccumAdam moves the moments on once every s steps, with the mean of s "
          "gradients; β₁ = .9^s, β₂ = .999^s, so that they forget as fast. Where one sample is all "
          "that a worker sees, Adam divides by the noise, and its steps are too small for a given "
          "α.",
      .header = {"method", "batch", "best α", "MSE there", "±"}};
  for (int batch : {1, 64}) {
    SyntheticSpec spec = logistic_spec(kWorkers);
    spec.heterogeneity = 0;
    spec.model_norm = 1;
    spec.batch = batch;
    const auto problem = make_logistic(spec);
    const std::vector<double> minimiser = problem->minimiser();
    Chart chart{.title = batch == 1 ? "one sample" : "64 samples",
                .x = {.label = "α at the start", .log = true},
                .y = {.label = "MSE after 1500 steps", .log = true}};
    for (const Method& method : kMethods) {
      std::vector<Contender> contenders;
      for (double lr : kRates) contenders.push_back({method.name, run_of(method, lr, options)});
      const auto outcomes = compare(*problem, minimiser, contenders, repeats_of(options, 4));
      Series series{.name = method.name};
      std::size_t best = 0;
      for (std::size_t k = 0; k < outcomes.size(); ++k) {
        const Final last = last_of(outcomes[k], &Point::error);
        series.x.push_back(kRates[k]);
        series.y.push_back(last.mean);
        series.low.push_back(std::max(last.mean - 2 * last.error, 0.0));
        series.high.push_back(last.mean + 2 * last.error);
        if (last.mean < series.y[best]) best = k;
      }
      figure.rows.push_back({method.name, std::to_string(batch), three_digits(kRates[best]),
                             three_digits(series.y[best]),
                             three_digits(last_of(outcomes[best], &Point::error).error)});
      chart.series.push_back(series);
    }
    figure.charts.push_back(chart);
  }
  return figure;
}

}  // namespace gossamer
