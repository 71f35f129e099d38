#include "gossamer/recipe/recipe.h"

#include "gossamer/recipe/host_shape.h"

namespace gossamer {

Hyper hyper_of(const OptimizerSection& optimizer, const AlgorithmSection& algorithm) {
  Hyper hyper = optimizer.hyper;
  hyper.outer_every = algorithm.outer_every;
  hyper.outer_momentum = algorithm.outer_momentum;
  hyper.outer_lr = algorithm.outer_lr;
  hyper.consensus = algorithm.consensus;
  return hyper;
}

HostShape host_shape_of(const ClusterSection& cluster) {
  return parse_host_shape(cluster.hosts, cluster.per_host, "train");
}

std::optional<double> dropout_of(const ModelSection& model) {
  return model.dropout == kUsualDropout ? std::nullopt : std::optional(model.dropout);
}

}  // namespace gossamer
