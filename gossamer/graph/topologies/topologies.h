#pragma once
/// The functions behind the table in topology.cpp; users call make_topology.

#include "gossamer/graph/topology.h"

namespace gossamer {

Schedule make_complete(const TopologyArgs& args);
Schedule make_ring(const TopologyArgs& args);
Schedule make_directed_ring(const TopologyArgs& args);
Schedule make_one_peer_ring(const TopologyArgs& args);
Schedule make_star(const TopologyArgs& args);
Schedule make_grid(const TopologyArgs& args);
Schedule make_torus(const TopologyArgs& args);
Schedule make_random(const TopologyArgs& args);
Schedule make_random_fixed(const TopologyArgs& args);
Schedule make_random_directed(const TopologyArgs& args);
Schedule make_exponential(const TopologyArgs& args);
Schedule make_one_peer_exponential(const TopologyArgs& args);
Schedule make_hypercube(const TopologyArgs& args);
Schedule make_base_k(const TopologyArgs& args);
Schedule make_alternating_exponential_ring(const TopologyArgs& args);
Schedule make_fitted(const TopologyArgs& args);

}  // namespace gossamer
