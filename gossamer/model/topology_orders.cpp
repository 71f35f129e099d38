#include "gossamer/model/topology_orders.h"

#include <algorithm>
#include <limits>

#include "gossamer/base/errors.h"
#include "gossamer/graph/spectra.h"
#include "gossamer/graph/topology.h"

namespace gossamer {

MixingStrength theory_mixing(const Schedule& schedule) {
  if (schedule.stochasticity != Stochasticity::doubly) {
    fail_argument({.place = "theory",
                   .what = "rows and columns of W must sum to 1",
                   .got = schedule.name + ", where only the columns do",
                   .remedy = "take a topology with a rho in `gossamer topology`"});
  }
  return mixing_strength(schedule);
}

int most_neighbours(const Schedule& schedule) {
  int most = 0;
  for (int t = 0; t < observed_rounds(schedule); ++t) {
    const Round round = round_at(schedule, t);
    for (int i = 0; i < round.workers; ++i) {
      const auto is_other = [i](const Entry& entry) { return entry.worker != i; };
      most = std::max(most, static_cast<int>(std::ranges::count_if(row_of(round, i), is_other)));
    }
  }
  return most;
}

std::vector<TopologyComparison> compare_topologies(const HostShape& shape) {
  constexpr int kMostCompared = 1024;
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const TransientRow& row =
      *find_transient_row(TransientMethod::d_sgd, Curvature::non_convex, DataSplit::iid);
  const SymbolValues values = symbol_values({.workers = shape.workers()});
  std::vector<TopologyComparison> rows;
  for (const TopologyOrder& order : published_topology_orders()) {
    TopologyComparison found{.order = order,
                             .printed_iterations = product_value(factors_of(order), values),
                             .rho = kUnknown,
                             .iterations = kUnknown};
    if (shape.workers() <= kMostCompared) {
      const Schedule schedule = make_topology(order.topology, {.shape = shape});
      const MixingStrength mixing = theory_mixing(schedule);
      found.neighbours = most_neighbours(schedule);
      found.rho = mixing.rho;
      found.iterations = transient_iterations(row, mixing);
    }
    rows.push_back(found);
  }
  return rows;
}

}  // namespace gossamer
