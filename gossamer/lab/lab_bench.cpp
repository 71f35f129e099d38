// Virtual workers per second: one-sample logistic regression, set-up and minimiser not counted.

#include <benchmark/benchmark.h>

#include <string>

#include "gossamer/graph/topology.h"
#include "gossamer/lab/run.h"

namespace gossamer {
namespace {

// Items are steps of a worker; `mse` is what the last run ends with.
void run(benchmark::State& state, const std::string& topology) {
  const auto workers = static_cast<int>(state.range(0));
  const std::int64_t steps = state.range(1);
  const auto problem = make_logistic({.workers = workers,
                                      .dimension = static_cast<int>(state.range(2)),
                                      .samples = workers > 1000 ? 200 : 2000,
                                      .heterogeneity = 1});
  const std::vector<double> minimiser = problem->minimiser();
  const Schedule schedule = make_topology(topology, {.shape = even_hosts(workers, 1)});
  double mse = 0;
  for (auto _ : state) {
    mse = run_lab(*problem, minimiser,
                  {.schedule = schedule,
                   .step_size = {.first = 0.2, .factor = 0.5, .every = 1000},
                   .steps = steps,
                   .record_every = steps})
              .back()
              .error;
    if (!(mse < 10)) state.SkipWithError("the result is wrong");
  }
  state.SetItemsProcessed(state.iterations() * workers * steps);
  state.counters["mse"] = mse;
}

BENCHMARK_CAPTURE(run, ring, "ring")
    ->ArgNames({"workers", "steps", "dimension"})
    ->ArgsProduct({{256}, {10'000}, {5, 10, 15, 16, 20, 30, 40}})
    ->Args({1024, 2'000, 10})
    ->Args({10'000, 200, 10})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, exponential, "exponential")
    ->ArgNames({"workers", "steps", "dimension"})
    ->Args({256, 10'000, 10})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, star, "star")
    ->ArgNames({"workers", "steps", "dimension"})
    ->Args({256, 10'000, 10})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(run, random, "random")
    ->ArgNames({"workers", "steps", "dimension"})
    ->Args({256, 500, 10})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gossamer
