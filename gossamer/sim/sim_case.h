#pragma once
/// For tests of the simulator: clusters and methods whose times can be worked out by hand.

#include <string>

#include "gossamer/graph/topology.h"
#include "gossamer/sim/simulate.h"

namespace gossamer::sim_case {

inline constexpr Framing kNoOverhead{.payload_bytes = 1, .frame_bytes = 1};

/// Links of 1 byte/ns without latency between the hosts, no limits inside.
inline ClusterSpec even_cluster(int hosts, int per_host) {
  ClusterSpec cluster;
  for (int h = 0; h < hosts; ++h) {
    cluster.hosts.push_back({.workers = per_host, .link = {.rate_bytes_per_s = 1e9}, .inside = {}});
  }
  return cluster;
}

inline SimMethod cwa(const std::string& topology, const ClusterSpec& cluster) {
  return {.schedule = make_topology(topology, {.shape = cluster.shape()})};
}

inline double ns(double count) { return count * 1e-9; }

/// The ends of a worker's steps in nanoseconds.
inline std::vector<std::int64_t> ends_ns(const SimResult& result, int worker) {
  std::vector<std::int64_t> ends;
  for (const SimStep& step : result.steps[static_cast<std::size_t>(worker)]) {
    ends.push_back(step.end.count());
  }
  return ends;
}

}  // namespace gossamer::sim_case
