#include "gossamer/graph/topology.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/graph/schedule_file.h"
#include "gossamer/graph/topologies/topologies.h"

namespace gossamer {
namespace {

constexpr Topology kTopologies[] = {
    {"complete", "", "everybody averages with everybody in every step", make_complete},
    {"ring", "", "two neighbours, weights 1/3", make_ring},
    {"directed_ring", "", "hears from i - 1, weights 1/2", make_directed_ring},
    {"one_peer_ring", "", "a ring that uses every other edge per step", make_one_peer_ring},
    {"star", "", "worker 0 talks to all others, Metropolis weights", make_star},
    {"grid", "", "near-square grid, Metropolis weights", make_grid},
    {"torus", "", "near-square torus, weights 1/5", make_torus},
    {"random", "", "a new graph per step, each edge with probability 1/2", make_random},
    {"random_fixed", "", "the first connected graph of `random` in every step", make_random_fixed},
    {"random_directed", "", "sends to `degree` others at random; for pattern push_sum only",
     make_random_directed, Stochasticity::column},
    {"exponential", "", "hears from i + 1, i + 2, i + 4, ... in every step", make_exponential},
    {"one_peer_exponential", "", "hears from one of i + 1, i + 2, i + 4, ... in turn",
     make_one_peer_exponential},
    {"hypercube", "", "pairs i XOR 2^k in turn; exact average; powers of two only", make_hypercube},
    {"base_k", "", "exact average in few steps for every size, at most `degree` neighbours",
     make_base_k},
    {"alternating_exponential_ring", "aer",
     "hosts average in pairs, half of them at a time; half a payload per host and step",
     make_alternating_exponential_ring},
    {"fitted", "", "hosts average in pairs, as often as the rates of their links allow",
     make_fitted},
};

void check_shape(const HostShape& shape) {
  if (shape.hosts() == 0) {
    fail_argument({.place = "topology", .what = "there must be at least one host", .got = "none"});
  }
  for (int workers : shape.workers_per_host) {
    if (workers >= 1) continue;
    fail_argument({.place = "topology",
                   .what = "every host must have at least one worker",
                   .got = std::to_string(workers),
                   .remedy = "leave out hosts without workers"});
  }
}

}  // namespace

std::span<const Topology> topologies() { return kTopologies; }

const Topology& find_topology(std::string_view name) {
  std::vector<std::string_view> valid;
  for (const Topology& topology : kTopologies) {
    if (name == topology.name || (!topology.alias.empty() && name == topology.alias)) {
      return topology;
    }
    valid.push_back(topology.name);
    if (!topology.alias.empty()) valid.push_back(topology.alias);
  }
  fail_unknown_name("topology", "topology", name, valid);
}

std::string full_name(std::string_view topology) {
  return std::string(is_schedule_file(topology) ? topology : find_topology(topology).name);
}

Schedule make_topology(std::string_view name, const TopologyArgs& args) {
  check_shape(args.shape);
  if (is_schedule_file(name)) return schedule_from_file(std::string(name), args.shape);
  Schedule schedule = find_topology(name).make(args);
  schedule.on = [name = std::string(name), args](const HostShape& shape) {
    TopologyArgs others = args;
    others.shape = shape;
    return make_topology(name, others);
  };
  return schedule;
}

}  // namespace gossamer
