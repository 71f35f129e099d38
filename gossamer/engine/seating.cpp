#include "gossamer/engine/seating.h"

#include "gossamer/base/index.h"

namespace gossamer {

int Seating::rank_at(int other) const { return ranks.empty() ? other : ranks[at(other)]; }

Seating alone(const Seating& seating) {
  return {.shape = HostShape{{1}}, .position = 0, .ranks = {seating.rank()}};
}

bool has_rank(const Seating& seating, int rank) {
  for (int position = 0; position < seating.workers(); ++position) {
    if (seating.rank_at(position) == rank) return true;
  }
  return false;
}

std::vector<int> ranks_of(const Seating& seating) {
  std::vector<int> ranks;
  for (int position = 0; position < seating.workers(); ++position) {
    ranks.push_back(seating.rank_at(position));
  }
  return ranks;
}

bool have_same_ranks(const Seating& a, const Seating& b) {
  if (a.workers() != b.workers()) return false;
  for (int position = 0; position < a.workers(); ++position) {
    if (a.rank_at(position) != b.rank_at(position)) return false;
  }
  return true;
}

Plan compile(const Round& round, const Seating& seating, std::int64_t count,
             const PlanOptions& options) {
  Plan plan = compile(round, seating.shape, seating.position, count, options);
  for (Phase& phase : plan.phases) {
    for (Message& message : phase.sends) message.peer = seating.rank_at(message.peer);
    for (Message& message : phase.receives) message.peer = seating.rank_at(message.peer);
  }
  return plan;
}

Tree tree_of(const Seating& seating) {
  const int own = seating.position;
  Tree tree;
  if (own > 0) tree.parent = seating.rank_at((own - 1) / 2);
  for (int child = 2 * own + 1; child <= 2 * own + 2 && child < seating.workers(); ++child) {
    tree.children.push_back(seating.rank_at(child));
  }
  return tree;
}

}  // namespace gossamer
