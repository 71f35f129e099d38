// PGA, AGA and local SGD on cycles.
#include "gossamer/graph/modifiers.h"
#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {
namespace {

constexpr int kEvery = 16;
constexpr int kRecordEvery = 50;

std::vector<Contender> contenders_of(const LabOptions& run) {
  const Schedule& ring = run.schedule;
  const int workers = ring.shape.workers();
  const auto with = [&](const char* name, const char* pattern, Schedule schedule) {
    LabOptions options = run;
    options.pattern = pattern;
    options.schedule = std::move(schedule);
    return Contender{name, options};
  };
  const Schedule complete = complete_schedule(ring.shape);
  return {with("parallel SGD", "allreduce", ring),
          with("D-SGD", "atc", ring),
          with("D-SGD, cwa", "cwa", ring),
          with("local SGD, H = 16", "atc", with_local_steps(complete, kEvery)),
          with("Exact-Diffusion", "exact_diffusion", workers % 2 == 0 ? lazy(ring) : ring),
          with("PGA, H = 16", "atc", with_global_average(ring, kEvery)),
          with("AGA, from H = 16", "atc", with_adaptive_global_average(ring, kEvery))};
}

/// Means over the records of kWindow steps. The MSE of local SGD rises between two averages and
/// falls with each, and records every 50 steps meet another phase of 16 each time.
Series smoothed(const Series& series) {
  constexpr int kWindow = 400;
  constexpr std::size_t kCount = kWindow / kRecordEvery;
  Series result = series;
  result.x.clear();
  for (auto* values : {&result.y, &result.low, &result.high}) {
    for (std::size_t k = 0; k + kCount <= values->size(); ++k) {
      double sum = 0;
      for (std::size_t j = k; j < k + kCount; ++j) sum += (*values)[j];
      (*values)[k] = sum / static_cast<double>(kCount);
    }
    if (values->size() >= kCount) values->resize(values->size() - kCount + 1);
  }
  result.x.assign(series.x.begin() + kCount - 1, series.x.end());
  return result;
}

}  // namespace

Figure global_averages(const FigureOptions& options) {
  Figure figure{
      .text =
          "Logistic regression on a cycle, every worker with data of its own, one sample per "
          "worker and step, α = .2 halved every 1000 steps. Global averages every 16 steps "
          "(PGA, adaptive AGA) bound what the cycle's spectral gap costs; without gossip between "
          "them this is local SGD.",
      .header = kFinalHeader,
      .columns = 3};
  for (int n : {20, 50, 100}) {
    const auto problem = make_logistic(logistic_spec(n));
    const LabOptions run{.schedule = topology_of("ring", n),
                         .step_size = kHalved,
                         .steps = 7500,
                         .record_every = kRecordEvery,
                         .seed = options.seed};
    const auto outcomes =
        compare(*problem, problem->minimiser(), contenders_of(run), repeats_of(options, 12));
    const std::string size = "n = " + std::to_string(n);
    for (auto row : final_rows(outcomes)) {
      row[0] += ", " + size;
      figure.rows.push_back(row);
    }
    figure.charts.push_back(chart_of(size, outcomes, &Point::error, "MSE, mean of 400 steps"));
    for (Series& series : figure.charts.back().series) series = smoothed(series);
  }
  return figure;
}

}  // namespace gossamer
