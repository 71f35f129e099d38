#pragma once
/// Seating: which worker of a transport has which position in a schedule.

#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/exchange/plan.h"

namespace gossamer {

/// Note [Positions and ranks]: schedules, rounds and plans count the workers that take part by
/// their positions; a transport knows workers by their ranks. This is the one mapping between the
/// two, and it is applied where a plan is made to be carried out: the peers of such a plan are
/// ranks. At first everybody takes part, and a worker's position is its rank.
struct Seating {
  HostShape shape;              ///< of the workers that take part, by position
  int position = 0;             ///< of this worker
  std::vector<int> ranks = {};  ///< by position; empty: each position is the rank

  int workers() const { return shape.workers(); }
  int rank_at(int other) const;
  /// This worker's.
  int rank() const { return rank_at(position); }
};

/// This worker by itself.
Seating alone(const Seating& seating);

bool has_rank(const Seating& seating, int rank);
/// By position.
std::vector<int> ranks_of(const Seating& seating);
/// Whether both are of the same workers.
bool have_same_ranks(const Seating& a, const Seating& b);

/// This worker's part of a round, with ranks as peers.
Plan compile(const Round& round, const Seating& seating, std::int64_t count,
             const PlanOptions& options = {});

/// The ranks of a worker's neighbours in the binary tree of broadcasts: its parent, if it has one,
/// and its children.
struct Tree {
  int parent = -1;  ///< −1: it is the root
  std::vector<int> children;
};
Tree tree_of(const Seating& seating);

}  // namespace gossamer
