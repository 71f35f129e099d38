#pragma once
/// The lecture's comparison of topologies, as printed and worked out for a number of workers.

#include <vector>

#include "gossamer/model/convergence.h"

namespace gossamer {

/// mixing_strength() of a schedule whose rounds are doubly stochastic; std::invalid_argument for
/// others, of which the theory of D-SGD says nothing.
MixingStrength theory_mixing(const Schedule& schedule);

/// How many others a worker hears at most in one round of a period: the communication of a step.
int most_neighbours(const Schedule& schedule);

struct TopologyComparison {
  TopologyOrder order;
  double printed_iterations = 0;  ///< the order's value at n
  int neighbours = 0;
  double rho = 0;         ///< effective_rho()
  double iterations = 0;  ///< transient_iterations() of D-SGD with ρ (non-convex, iid)
};

/// The rows of published_topology_orders() on these hosts. Costs what their spectra cost, half a
/// second for 1024 workers; with more, neighbours are 0, ρ and iterations NaN.
std::vector<TopologyComparison> compare_topologies(const HostShape& shape);

}  // namespace gossamer
