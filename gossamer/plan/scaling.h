#pragma once
/// What all hosts together give beyond one of them, and what a method takes of memory and disk.

#include <string>

#include "gossamer/plan/ranking.h"

namespace gossamer {

/// The first host alone, with the same work per worker.
struct Scaling {
  int workers = 0;         ///< of that host
  double step_s = 0;       ///< its step with ddp
  double recommended = 0;  ///< samples per second of all hosts with it, over those of the host
  double ddp = 0;          ///< the same with ddp
};

/// For a cluster of two hosts or more.
Scaling scaling_of(const ClusterSpec& cluster, const Workload& workload, const Ranking& ranking);

/// A sentence of it.
std::string words_of(const Scaling& scaling, const Ranking& ranking, int hosts);

/// Bytes per parameter of a worker, of which `bytes` are those of an element.
struct Footprint {
  double device = 0;      ///< on its device, beside what training has there
  double pinned = 0;      ///< in the host's memory, pinned, where its parameters are on a device
  double checkpoint = 0;  ///< what gossip.save writes: parameters, and the optimizer's state
};

/// gossip on a device keeps the correction and two copies of what is sent; all-reduce the gradients
/// and their means. (docs/from-ddp.md, counted in test_gossip_device_shards.) DDP keeps nothing
/// here.
Footprint footprint_of(const MethodSpec& method, const std::string& optimizer, double bytes);

}  // namespace gossamer
