// How fast the simulator is, and what memory it takes, at the largest scale it is meant for.

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "gossamer/graph/topology.h"
#include "gossamer/sim/simulate.h"

namespace gossamer {
namespace {

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;
}

// Workers on hosts of `per_host`, `steps` steps with jitter; `load` percent of the compute time are
// what the links need for a step. Items are steps of a worker.
void BM_one_peer_exponential(benchmark::State& state) {
  const auto workers = static_cast<int>(state.range(0));
  const auto per_host = static_cast<int>(state.range(1));
  const std::int64_t steps = state.range(2);
  const double load = static_cast<double>(state.range(3)) / 100;
  constexpr std::int64_t kElements = 25'000'000;
  constexpr double kRate = 1.25e9;
  ClusterSpec cluster;
  for (int h = 0; h < workers / per_host; ++h) {
    cluster.hosts.push_back({per_host, {kRate, 20e-6}, {20e9, 2e-6}});
  }
  const SimMethod method{.schedule =
                             make_topology("one_peer_exponential", {.shape = cluster.shape()})};
  const double bytes = 4.0 * static_cast<double>(kElements * per_host);
  const double mean_s = bytes / kRate / load;
  const Workload workload{
      .buckets = {kElements},
      .compute = {.jitter = Jitter::lognormal, .mean_s = mean_s, .deviation_s = 0.1 * mean_s}};
  for (auto _ : state) {
    const SimResult result = simulate(cluster, workload, method, {.steps = steps});
    if (!result.waits_for.empty() || !(mean_step_s(result) >= mean_s * 0.99)) {
      state.SkipWithError("the result is wrong");
    }
  }
  state.SetItemsProcessed(state.iterations() * workers * steps);
  state.counters["peak_MB"] = peak_megabytes();
}

BENCHMARK(BM_one_peer_exponential)
    ->ArgNames({"workers", "per_host", "steps", "load"})
    ->Args({64, 8, 1000, 50})
    ->Args({64, 8, 1000, 200})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(BM_one_peer_exponential)
    ->ArgNames({"workers", "per_host", "steps", "load"})
    ->Args({4096, 1, 1000, 50})
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

}  // namespace
}  // namespace gossamer
