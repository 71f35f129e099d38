// D-SGD on rings against parallel SGD where all workers have the same data: the transient stage.
#include <memory>

#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {
namespace {

struct Setting {
  const char* name;
  std::unique_ptr<const Problem> (*make)(const SyntheticSpec& spec);
  StepSize step_size;
  std::vector<int> sizes;
};

void add_rings(Figure& figure, const Setting& setting, const FigureOptions& options) {
  for (int n : setting.sizes) {
    const auto problem = setting.make(
        {.workers = n, .dimension = 10, .samples = 2000, .heterogeneity = 0, .noise = 1});
    const LabOptions ring{.schedule = topology_of("ring", n),
                          .step_size = setting.step_size,
                          .steps = 20'000,
                          .record_every = 20,
                          .seed = options.seed};
    LabOptions parallel = ring;
    parallel.pattern = "allreduce";
    const std::string title = std::string(setting.name) + ", n = " + std::to_string(n);
    const std::vector<Outcome> outcomes =
        compare(*problem, problem->minimiser(),
                {{"parallel SGD, " + title, parallel}, {"D-SGD, ring, " + title, ring}},
                repeats_of(options, 8));
    for (const auto& row : final_rows(outcomes)) figure.rows.push_back(row);
    Chart chart = chart_of(title, outcomes, &Point::error, "MSE");
    chart.series[0].name = "parallel SGD";
    chart.series[1].name = "D-SGD, ring";
    chart.x.log = true;
    figure.charts.push_back(chart);
  }
}

}  // namespace

Figure transient_stage(const FigureOptions& options) {
  Figure figure{
      .text =
          "Least squares and logistic regression (the lecture's illustration) with the same "
          "distribution for all workers, one sample per worker and step, α falling as 1/t. D-SGD "
          "on "
          "a ring keeps up with parallel SGD after a transient stage, which grows with n; "
          "`gossamer "
          "lab transient` measures how fast.",
      .header = kFinalHeader};
  add_rings(figure,
            {"least squares", make_least_squares, {.first = 0.1, .decay = 50}, {16, 32, 64}},
            options);
  add_rings(figure, {"logistic", make_logistic, {.first = 0.2, .decay = 100}, {8, 16, 32}},
            options);
  figure.columns = 3;
  return figure;
}

}  // namespace gossamer
