#include "gossamer/recipe/recipe.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gossamer/recipe/host_shape.h"

namespace gossamer {

HostShape host_shape_of(const ClusterSection& cluster) {
  return parse_host_shape(cluster.hosts, cluster.per_host, "train");
}

void set_hosts(ClusterSection& cluster, const HostShape& shape) {
  const std::vector<int>& counts = shape.workers_per_host;
  std::string list;
  for (const int count : counts) {
    if (!list.empty()) list += ',';
    list += std::to_string(count);
  }
  const bool is_even = std::ranges::count(counts, counts.front()) == std::ssize(counts);
  cluster.hosts = shape.hosts();
  cluster.per_host = is_even ? std::to_string(counts.front()) : list;
}

std::optional<double> dropout_of(const ModelSection& model) {
  return model.dropout == kUsualDropout ? std::nullopt : std::optional(model.dropout);
}

}  // namespace gossamer
