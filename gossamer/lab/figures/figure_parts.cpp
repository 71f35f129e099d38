#include "gossamer/lab/figures/figure_parts.h"

#include "gossamer/graph/topology.h"

namespace gossamer {

HostShape alone_on_hosts(int workers) { return even_hosts(workers, 1); }

Schedule topology_of(const std::string& name, int workers) {
  return make_topology(name, {.shape = alone_on_hosts(workers)});
}

SyntheticSpec logistic_spec(int workers) {
  return {.workers = workers,
          .dimension = 10,
          .samples = 2000,
          .feature_variance = 7,
          .heterogeneity = 0.8,
          .model_norm = 0.6,
          .seed = 5};
}

Repeats repeats_of(const FigureOptions& options, int trials) {
  return {.trials = options.trials > 0 ? options.trials : trials, .threads = options.threads};
}

}  // namespace gossamer
