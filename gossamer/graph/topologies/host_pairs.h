#pragma once
/// What topologies of hosts share.

#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/base/index.h"

namespace gossamer {

/// By host, which HostShape::first_rank() adds up anew for each of them.
inline std::vector<int> first_ranks(const HostShape& shape) {
  std::vector<int> first;
  int next = 0;
  for (const int workers : shape.workers_per_host) {
    first.push_back(next);
    next += workers;
  }
  return first;
}

/// Adds all workers of a host to a group that averages; `first`: first_ranks() of the shape.
inline void append_workers(std::vector<int>& group, const HostShape& shape,
                           const std::vector<int>& first, int host) {
  for (int k = 0; k < shape.workers_per_host[at(host)]; ++k) group.push_back(first[at(host)] + k);
}

}  // namespace gossamer
