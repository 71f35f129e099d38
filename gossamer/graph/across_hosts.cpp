#include <algorithm>
#include <string>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/graph/algebra.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topologies/host_pairs.h"

namespace gossamer {
namespace {

bool all_equal(const std::vector<int>& counts) {
  return std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
}

Round spread_partition(const Round& hosts, const HostShape& shape) {
  const std::vector<int> first = first_ranks(shape);
  std::vector<std::vector<int>> groups;
  for (const std::vector<int>& joined : hosts.groups) {
    std::vector<int>& group = groups.emplace_back();
    for (int host : joined) append_workers(group, shape, first, host);
  }
  return partition_round(shape.workers(), std::move(groups));
}

/// How much of the hosts' weight row a of `hosts` moves, such that rows and columns of host h sum
/// to L_h (Note on the three cases in the header).
std::vector<Entry> moved(const Round& hosts, const std::vector<int>& workers, int a,
                         bool symmetric) {
  const int smallest = *std::min_element(workers.begin(), workers.end());
  const int own = workers[at(a)];
  std::vector<Entry> row;
  double kept = own;
  for (const Entry& entry : hosts.rows[at(a)]) {
    if (entry.worker == a) continue;
    const int common = symmetric ? std::min(own, workers[at(entry.worker)]) : smallest;
    row.push_back({entry.worker, entry.weight * common});
    kept -= row.back().weight;
  }
  row.push_back({a, std::max(kept, 0.0)});
  return row;
}

Round spread_rows(const Round& hosts, const HostShape& shape) {
  const std::vector<int>& workers = shape.workers_per_host;
  const std::vector<int> first = first_ranks(shape);
  const bool symmetric = all_equal(workers) || is_symmetric(hosts);
  std::vector<std::vector<Entry>> rows;
  for (int a = 0; a < shape.hosts(); ++a) {
    std::vector<Entry> row;
    for (const Entry& entry : moved(hosts, workers, a, symmetric)) {
      const int others = workers[at(entry.worker)];
      const double weight = entry.weight / workers[at(a)] / others;
      for (int k = 0; k < others; ++k) row.push_back({first[at(entry.worker)] + k, weight});
    }
    for (int k = 0; k < workers[at(a)]; ++k) rows.push_back(row);
  }
  return sparse_round(shape.workers(), std::move(rows));
}

}  // namespace

Schedule across_hosts(Schedule between, const HostShape& shape) {
  if (between.shape.workers() != shape.hosts()) {
    fail_argument({.place = "graph",
                   .what = "the schedule between hosts must have one worker per host, that is " +
                           std::to_string(shape.hosts()),
                   .got = std::to_string(between.shape.workers())});
  }
  if (between.stochasticity == Stochasticity::column) {
    fail_argument({.place = "graph",
                   .what = "between hosts the rows of W must sum to 1",
                   .got = between.name,
                   .remedy = "use another topology between hosts"});
  }
  if (between.stochasticity == Stochasticity::row && !all_equal(shape.workers_per_host)) {
    fail_argument({.place = "graph",
                   .what = "hosts with unequal numbers of workers need doubly stochastic weights",
                   .got = between.name,
                   .remedy = "use the same number of workers on every host or another topology"});
  }
  Schedule result{.name = between.name + " across hosts",
                  .shape = shape,
                  .period = between.period,
                  .loss_driven = between.loss_driven,
                  .stochasticity = between.stochasticity,
                  .round = {}};
  result.round = [inner = std::move(between), shape](std::int64_t t,
                                                     std::span<const AgreedLoss> losses) {
    const Round hosts = round_at(inner, t, losses);
    return is_partition(hosts) ? spread_partition(hosts, shape) : spread_rows(hosts, shape);
  };
  return result;
}

}  // namespace gossamer
