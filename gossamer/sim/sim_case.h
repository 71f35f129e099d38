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

/// The row of that name, ddp among them.
inline const PatternFacts& facts(std::string_view name) {
  return name == "ddp" ? ddp_facts() : find_pattern_facts(name);
}

/// The method with that pattern, updated and averaged as is usual with it.
inline SimMethod of_pattern(std::string_view name, SimMethod method = {}) {
  const PatternFacts& pattern = facts(name);
  method.pattern = &pattern;
  method.update = pattern.usual_update;
  method.group_method = pattern.is_ddp ? GroupMethod::ring : method.group_method;
  return method;
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
