#include "gossamer/graph/round.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"

namespace gossamer {
namespace {

constexpr double kSumTolerance = 1e-9;

bool by_worker(const Entry& a, const Entry& b) { return a.worker < b.worker; }

void merge_repeated(std::vector<Entry>& row) {
  std::sort(row.begin(), row.end(), by_worker);
  std::vector<Entry> merged;
  for (const Entry& entry : row) {
    if (!merged.empty() && merged.back().worker == entry.worker) {
      merged.back().weight += entry.weight;
    } else {
      merged.push_back(entry);
    }
  }
  std::erase_if(merged, [](const Entry& entry) { return entry.weight == 0; });
  row = std::move(merged);
}

void check_sum(std::string_view kind, std::size_t index, double sum) {
  if (std::abs(sum - 1) <= kSumTolerance) return;
  fail_argument({.place = "graph",
                 .what = std::string(kind) + " " + std::to_string(index) + " of W must sum to 1",
                 .got = std::to_string(sum),
                 .remedy = "scale its weights, or give the rest to the worker itself"});
}

}  // namespace

bool is_partition(const Round& round) { return !round.groups.empty(); }

bool is_global_average(const Round& round) { return round.groups.size() == 1; }

const std::vector<int>& group_of(const Round& round, int worker) {
  for (const std::vector<int>& group : round.groups) {
    if (std::binary_search(group.begin(), group.end(), worker)) return group;
  }
  GOSSAMER_ASSERT(!"worker stands in no group");
  return round.groups.front();
}

std::vector<Entry> row_of(const Round& round, int worker) {
  if (!is_partition(round)) return round.rows.at(at(worker));
  const std::vector<int>& group = group_of(round, worker);
  std::vector<Entry> row;
  row.reserve(group.size());
  for (int member : group) row.push_back({member, 1.0 / static_cast<double>(group.size())});
  return row;
}

double self_weight(const Round& round, int worker) {
  for (const Entry& entry : row_of(round, worker)) {
    if (entry.worker == worker) return entry.weight;
  }
  return 0;
}

Round identity_round(int workers) {
  std::vector<std::vector<Entry>> rows(at(workers));
  for (int i = 0; i < workers; ++i) rows[at(i)] = {{i, 1.0}};
  return {workers, std::move(rows), {}};
}

Round complete_round(int workers) {
  std::vector<int> everybody(at(workers));
  std::iota(everybody.begin(), everybody.end(), 0);
  return {workers, {}, {std::move(everybody)}};
}

Round partition_round(int workers, std::vector<std::vector<int>> groups) {
  std::vector<int> seen(at(workers), 0);
  for (std::vector<int>& group : groups) {
    std::sort(group.begin(), group.end());
    for (int member : group) {
      const bool in_range = member >= 0 && member < workers;
      if (in_range && ++seen[at(member)] == 1) continue;
      fail_argument({.place = "graph",
                     .what = "every worker must stand in exactly one group",
                     .got = "worker " + std::to_string(member) +
                            (in_range ? " twice" : " of " + std::to_string(workers))});
    }
  }
  std::erase_if(groups, [](const std::vector<int>& group) { return group.empty(); });
  const auto missing = std::find(seen.begin(), seen.end(), 0);
  if (missing != seen.end()) {
    fail_argument({.place = "graph",
                   .what = "every worker must stand in exactly one group",
                   .got = "none for worker " + std::to_string(missing - seen.begin())});
  }
  return {workers, {}, std::move(groups)};
}

Round sparse_round(int workers, std::vector<std::vector<Entry>> rows) {
  if (rows.size() != at(workers)) {
    fail_argument({.place = "graph",
                   .what = "W must have one row per worker",
                   .got = std::to_string(rows.size()) + " rows for " + std::to_string(workers)});
  }
  for (std::vector<Entry>& row : rows) {
    for (const Entry& entry : row) {
      if (entry.worker >= 0 && entry.worker < workers && std::isfinite(entry.weight)) continue;
      fail_argument({.place = "graph",
                     .what = "an entry of W needs a worker below " + std::to_string(workers) +
                             " and a finite weight",
                     .got = std::to_string(entry.worker) + ": " + std::to_string(entry.weight)});
    }
    merge_repeated(row);
  }
  return {workers, std::move(rows), {}};
}

void check_stochastic(const Round& round, Stochasticity declared) {
  if (is_partition(round)) return;
  std::vector<double> column_sums(at(round.workers), 0.0);
  for (std::size_t i = 0; i < round.rows.size(); ++i) {
    double row_sum = 0;
    for (const Entry& entry : round.rows[i]) {
      if (entry.weight < 0) {
        fail_argument({.place = "graph",
                       .what = "weights of W must not be negative",
                       .got = "W[" + std::to_string(i) + "][" + std::to_string(entry.worker) +
                              "] = " + std::to_string(entry.weight)});
      }
      row_sum += entry.weight;
      column_sums[at(entry.worker)] += entry.weight;
    }
    if (declared != Stochasticity::column) check_sum("row", i, row_sum);
  }
  if (declared == Stochasticity::row) return;
  for (std::size_t j = 0; j < column_sums.size(); ++j) check_sum("column", j, column_sums[j]);
}

}  // namespace gossamer
