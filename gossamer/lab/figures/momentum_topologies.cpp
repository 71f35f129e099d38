// DmSGD over topologies, and static against one-peer exponential graphs.
#include "gossamer/graph/topology.h"
#include "gossamer/lab/figures/figure_parts.h"

namespace gossamer {
namespace {

LabOptions momentum_run(Schedule schedule, const FigureOptions& options) {
  LabOptions run{.schedule = std::move(schedule),
                 .pattern = "dmsgd",
                 .optimizer = "momentum",
                 .step_size = {.first = 0.05, .factor = 0.5, .every = 1000},
                 .steps = 5700,
                 .record_every = 50,
                 .seed = options.seed};
  run.hyper.momentum = 0.8;
  return run;
}

/// Chosen like the others' data, for the published ratios of these methods.
SyntheticSpec data_of(int workers) {
  SyntheticSpec spec = logistic_spec(workers);
  spec.heterogeneity = 1;
  spec.model_norm = 0.7;
  spec.seed = 3;
  return spec;
}

LabOptions parallel_of(LabOptions run) {
  run.pattern = "allreduce";
  return run;
}

}  // namespace

Figure dmsgd_topologies(const FigureOptions& options) {
  constexpr int kWorkers = 32;
  Figure figure{
      .text =
          "DmSGD that averages parameters and momentum, β = .8, n = 32, α = .05 halved every "
          "1000 steps, logistic regression with unequal data. aer is on 8 hosts of 4.",
      .header = kFinalHeader};
  const auto problem = make_logistic(data_of(kWorkers));
  std::vector<Contender> contenders;
  contenders.push_back(
      {"parallel SGD", parallel_of(momentum_run(topology_of("ring", kWorkers), options))});
  for (const char* name :
       {"exponential", "one_peer_exponential", "torus", "grid", "one_peer_ring", "ring", "star"}) {
    contenders.push_back({name, momentum_run(topology_of(name, kWorkers), options)});
  }
  contenders.push_back(
      {"aer", momentum_run(make_topology("aer", {.shape = even_hosts(8, 4)}), options)});
  const auto outcomes = compare(*problem, problem->minimiser(), contenders, repeats_of(options, 8));
  figure.rows = final_rows(outcomes);
  figure.charts = {chart_of("DmSGD, n = 32", outcomes, &Point::error, "MSE"),
                   chart_of("Disagreement", {outcomes.begin() + 1, outcomes.end()},
                            &Point::disagreement, "mean ‖x_i − x̄‖²")};
  return figure;
}

Figure one_peer_exponential(const FigureOptions& options) {
  Figure figure{
      .text =
          "The static exponential graph sends to ⌈log₂ n⌉ neighbours in every step, the "
          "one-peer one to a single neighbour: nearly the same curve for a fraction of the "
          "traffic, at sizes that are powers of two and at others.",
      .header = kFinalHeader};
  for (int n : {32, 48}) {
    const auto problem = make_logistic(data_of(n));
    const std::string size = ", n = " + std::to_string(n);
    const LabOptions fixed = momentum_run(topology_of("exponential", n), options);
    const LabOptions one_peer = momentum_run(topology_of("one_peer_exponential", n), options);
    const auto outcomes = compare(*problem, problem->minimiser(),
                                  {{"parallel SGD" + size, parallel_of(fixed)},
                                   {"static exponential" + size, fixed},
                                   {"one-peer exponential" + size, one_peer}},
                                  repeats_of(options, 8));
    for (const auto& row : final_rows(outcomes)) figure.rows.push_back(row);
    Chart chart = chart_of("n = " + std::to_string(n), outcomes, &Point::error, "MSE");
    chart.series[0].name = "parallel SGD";
    chart.series[1].name = "static exponential";
    chart.series[2].name = "one-peer exponential";
    figure.charts.push_back(chart);
  }
  return figure;
}

}  // namespace gossamer
