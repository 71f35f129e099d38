#pragma once
/// What topologies of hosts share.

#include <vector>

#include "gossamer/base/cluster.h"

namespace gossamer {

/// Adds all workers of a host to a group that averages.
inline void append_workers(std::vector<int>& group, const HostShape& shape, int host) {
  const int first = shape.first_rank(host);
  for (int k = 0; k < shape.workers_per_host[static_cast<std::size_t>(host)]; ++k) {
    group.push_back(first + k);
  }
}

}  // namespace gossamer
