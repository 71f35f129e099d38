// D-SGD on rings against parallel SGD where all workers have the same data: the transient stage.
#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {

Figure transient_stage(const FigureOptions& options) {
  Figure figure{
      .text =
          "Least squares with the same distribution for all workers, one sample per worker "
          "and step, α falling as 1/t. D-SGD on a ring keeps up with parallel SGD after a "
          "transient stage, which grows with n; `gossamer lab transient` measures how fast.",
      .header = kFinalHeader};
  for (int n : {16, 32, 64}) {
    const auto problem = make_least_squares(
        {.workers = n, .dimension = 10, .samples = 2000, .heterogeneity = 0, .noise = 1});
    const LabOptions ring{.schedule = topology_of("ring", n),
                          .step_size = {.first = 0.1, .decay = 50},
                          .steps = 20'000,
                          .record_every = 20,
                          .seed = options.seed};
    LabOptions parallel = ring;
    parallel.pattern = "allreduce";
    const std::string size = ", n = " + std::to_string(n);
    const std::vector<Outcome> outcomes = compare(
        *problem, problem->minimiser(),
        {{"parallel SGD" + size, parallel}, {"D-SGD, ring" + size, ring}}, repeats_of(options, 8));
    for (const auto& row : final_rows(outcomes)) figure.rows.push_back(row);
    Chart chart = chart_of("n = " + std::to_string(n), outcomes, &Point::error, "MSE");
    chart.series[0].name = "parallel SGD";
    chart.series[1].name = "D-SGD, ring";
    chart.x.log = true;
    figure.charts.push_back(chart);
  }
  figure.columns = 3;
  return figure;
}

}  // namespace gossamer
