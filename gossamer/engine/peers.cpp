#include "gossamer/engine/peers.h"

#include <set>

#include "gossamer/algo/pattern.h"
#include "gossamer/engine/collectives.h"

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
  const Schedule& schedule = options.schedule;
  const HostShape& shape = schedule.shape;
  // So many elements that no worker's share of any cut is empty.
  const std::int64_t count = std::int64_t{64} * shape.workers() * shape.workers();
  std::set<int> peers;
  for (int peer : tree_peers(rank, shape.workers())) peers.insert(peer);
  add_peers(
      compile(complete_round(shape.workers()), shape, rank, count, {.finished_averages = true}),
      peers);
  const bool whole = find_pattern(options.pattern).rounds == Rounds::complete;
  const PlanOptions plans = plan_options(options);
  if (whole) {
    add_peers(compile(complete_round(shape.workers()), shape, rank, count, plans), peers);
  } else if (schedule.period > 0) {
    for (std::int64_t t = 0; t < schedule.period; ++t) {
      add_peers(compile(round_at(schedule, t), shape, rank, count, plans), peers);
    }
  } else {
    for (int peer = 0; peer < shape.workers(); ++peer) peers.insert(peer);
  }
  peers.erase(rank);
  return {peers.begin(), peers.end()};
}

}  // namespace gossamer
