#pragma once
/// The table of topologies: a name, what it is, and the function that builds its Schedule.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/graph/schedule.h"

namespace gossamer {

/// What a topology may depend on.
struct TopologyArgs {
  HostShape shape;
  std::uint64_t seed = 0;  ///< random graphs only
  int degree = 1;          ///< base_k: neighbours per round, k; random_directed: receivers
  /// fitted: rates of the hosts' links, in any unit; empty: all equal.
  std::vector<double> link_rates = {};
};

struct Topology {
  std::string_view name;
  std::string_view alias;    ///< a short second name, may be empty
  std::string_view summary;  ///< one line for --help
  Schedule (*make)(const TopologyArgs&);
  /// Of its rounds; where they are not doubly stochastic, only pattern push_sum follows it.
  Stochasticity stochasticity = Stochasticity::doubly;
};

/// All topologies, in the order of --help.
std::span<const Topology> topologies();

/// Looks a name or alias up; throws std::invalid_argument that lists the valid ones.
const Topology& find_topology(std::string_view name);

/// The table's name for an alias; the name of a schedule's file is what it is.
std::string full_name(std::string_view topology);

/// find_topology(name).make(args), or schedule_from_file(name, …) for a name in .json. A size that
/// the topology cannot serve is std::invalid_argument that names those which can.
Schedule make_topology(std::string_view name, const TopologyArgs& args);

}  // namespace gossamer
