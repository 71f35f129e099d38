#include "gossamer/engine/peers.h"

#include <set>

#include "gossamer/engine/plan_book.h"
#include "gossamer/engine/seating.h"

namespace gossamer {
namespace {

void add_peers(const Plan& plan, std::set<int>& peers) {
  for (const Phase& phase : plan.phases) {
    for (const Message& message : phase.sends) peers.insert(message.peer);
    for (const Message& message : phase.receives) peers.insert(message.peer);
  }
}

}  // namespace

std::vector<int> peers_of(const EngineOptions& options, int rank) {
  const Schedule schedule = schedule_of(options);
  const Seating seating{schedule.shape, rank};
  const int workers = seating.workers();
  // So many elements that no worker's share of any cut is empty.
  const std::int64_t count = std::int64_t{64} * workers * workers;
  std::set<int> peers;
  const Tree tree = tree_of(seating);
  if (tree.parent >= 0) peers.insert(tree.parent);
  peers.insert(tree.children.begin(), tree.children.end());
  add_peers(compile(complete_round(workers), seating, count, {.finished_averages = true}), peers);
  const PlanOptions plans = plan_options(options);
  for (std::int64_t t = 0; t < schedule.period; ++t) {
    add_peers(compile(round_at(schedule, t), seating, count, plans), peers);
  }
  if (schedule.period == 0) {
    for (int position = 0; position < workers; ++position) peers.insert(seating.rank_at(position));
  }
  peers.erase(rank);
  return {peers.begin(), peers.end()};
}

}  // namespace gossamer
