#include "gossamer/engine/peers.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/errors.h"
#include "gossamer/engine/plan_book.h"

namespace gossamer {
namespace {

void add_peers(const Plan& plan, std::set<int>& peers) {
  for (const Phase& phase : plan.phases) {
    for (const Message& message : phase.sends) peers.insert(message.peer);
    for (const Message& message : phase.receives) peers.insert(message.peer);
  }
}

/// So many elements that no worker's share of any cut is empty.
std::int64_t count_for(int workers) { return std::int64_t{64} * workers * workers; }

void add_peers_in_collectives(const Seating& seating, std::set<int>& peers) {
  const int workers = seating.workers();
  const Tree tree = tree_of(seating);
  if (tree.parent >= 0) peers.insert(tree.parent);
  peers.insert(tree.children.begin(), tree.children.end());
  add_peers(
      compile(complete_round(workers), seating, count_for(workers), {.finished_averages = true}),
      peers);
}

void add_peers_in_rounds(const EngineOptions& options, const Schedule& schedule,
                         const Seating& seating, std::set<int>& peers) {
  const int workers = seating.workers();
  const PlanOptions plans = plan_options(options);
  for (std::int64_t t = 0; t < schedule.period; ++t) {
    add_peers(compile(round_at(schedule, t), seating, count_for(workers), plans), peers);
  }
  if (schedule.period == 0) {
    for (int position = 0; position < workers; ++position) peers.insert(seating.rank_at(position));
  }
}

std::vector<int> without(int rank, std::set<int> peers) {
  peers.erase(rank);
  return {peers.begin(), peers.end()};
}

}  // namespace

Seating seating_of_all(const EngineOptions& options, const TransportInfo& info) {
  check_options(options);
  const HostShape& shape = options.schedule.shape;
  if (info.workers != shape.workers()) {
    fail_argument({.place = "engine",
                   .what = "the schedule must be for the transport's " +
                           std::to_string(info.workers) + " workers",
                   .got = std::to_string(shape.workers())});
  }
  return {shape, info.rank};
}

std::vector<int> peers_of(const EngineOptions& options, int rank) {
  const Schedule schedule = schedule_of(options);
  const Seating seating{schedule.shape, rank};
  std::set<int> peers;
  add_peers_in_collectives(seating, peers);
  add_peers_in_rounds(options, schedule, seating, peers);
  return without(rank, std::move(peers));
}

std::vector<int> neighbours_of(const EngineOptions& options, int rank) {
  const Schedule schedule = schedule_of(options);
  std::set<int> peers;
  add_peers_in_rounds(options, schedule, {schedule.shape, rank}, peers);
  return without(rank, std::move(peers));
}

std::vector<int> company_of(const EngineOptions& options, int rank) {
  if (options.late == Late::skip) {
    std::vector<int> peers = neighbours_of(options, rank);
    if (!peers.empty()) return peers;
  }
  std::set<int> peers;
  for (int other = 0; other < options.schedule.shape.workers(); ++other) peers.insert(other);
  return without(rank, std::move(peers));
}

}  // namespace gossamer
