#include "gossamer/recipe/recipe.h"

#include "gossamer/recipe/host_shape.h"

namespace gossamer {

HostShape host_shape_of(const ClusterSection& cluster) {
  return parse_host_shape(cluster.hosts, cluster.per_host, "train");
}

std::optional<double> dropout_of(const ModelSection& model) {
  return model.dropout == kUsualDropout ? std::nullopt : std::optional(model.dropout);
}

}  // namespace gossamer
