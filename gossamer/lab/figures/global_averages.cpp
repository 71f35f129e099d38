// PGA, AGA and local SGD on cycles.
#include "gossamer/graph/modifiers.h"
#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {
namespace {

constexpr int kEvery = 16;
// The MSE of local SGD rises between two averages and falls with each: records of every fifth step
// meet all 16 phases alike.
constexpr int kRecordEvery = 5;

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

/// Means over the records of kWindow steps, one for each kStride.
Series smoothed(const Series& series) {
  constexpr int kWindow = 400;
  constexpr int kStride = 50;
  constexpr std::size_t kCount = kWindow / kRecordEvery;
  Series result{.name = series.name, .x = {}, .y = {}, .low = {}, .high = {}};
  const auto mean_at = [](const std::vector<double>& values, std::size_t end) {
    double sum = 0;
    for (std::size_t k = end - kCount; k < end; ++k) sum += values[k];
    return sum / static_cast<double>(kCount);
  };
  for (std::size_t end = kCount; end <= series.y.size(); end += kStride / kRecordEvery) {
    result.x.push_back(series.x[end - 1]);
    result.y.push_back(mean_at(series.y, end));
    if (!series.low.empty()) result.low.push_back(mean_at(series.low, end));
    if (!series.high.empty()) result.high.push_back(mean_at(series.high, end));
  }
  return result;
}

/// The last records of each trial as one: their mean over kLastSteps.
std::vector<Outcome> at_the_end(std::vector<Outcome> outcomes) {
  constexpr std::ptrdiff_t kLastSteps = 200;
  constexpr std::ptrdiff_t kCount = kLastSteps / kRecordEvery;
  for (Outcome& outcome : outcomes) {
    for (std::vector<Point>& trial : outcome.trials) {
      Point mean{.step = trial.back().step};
      for (auto point = trial.end() - kCount; point != trial.end(); ++point) {
        mean.error += point->error / kCount;
        mean.mean_error += point->mean_error / kCount;
        mean.disagreement += point->disagreement / kCount;
      }
      trial = {mean};
    }
  }
  return outcomes;
}

}  // namespace

Figure global_averages(const FigureOptions& options) {
  Figure figure{
      .text =
          "Logistic regression on a cycle, every worker with data of its own, one sample per "
          "worker and step, α = .2 halved every 1000 steps. Global averages every 16 steps "
          "(PGA, adaptive AGA) bound what the cycle's spectral gap costs; without gossip between "
          "them this is local SGD. The table has means over the last 200 steps.",
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
    for (auto row : final_rows(at_the_end(outcomes))) {
      row[0] += ", " + size;
      figure.rows.push_back(row);
    }
    figure.charts.push_back(chart_of(size, outcomes, &Point::error, "MSE, mean of 400 steps"));
    for (Series& series : figure.charts.back().series) series = smoothed(series);
  }
  return figure;
}

}  // namespace gossamer
