#include "gossamer/graph/algebra.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"

namespace gossamer {
namespace {

constexpr double kSame = 1e-15;

std::vector<std::vector<Entry>> rows_of(const Round& round) {
  if (!is_partition(round)) return round.rows;
  std::vector<std::vector<Entry>> rows(at(round.workers));
  for (const std::vector<int>& group : round.groups) {
    const double share = 1.0 / static_cast<double>(group.size());
    for (int i : group) {
      for (int j : group) rows[at(i)].push_back({j, share});
    }
  }
  return rows;
}

/// Adds sparse rows up in a dense scratch row that is cleared through its list of used places.
class Accumulator {
 public:
  explicit Accumulator(int workers) : sums_(at(workers), 0.0), used_(at(workers), false) {}

  void add(const std::vector<Entry>& row, double scale) {
    for (const Entry& entry : row) {
      if (!used_[at(entry.worker)]) touched_.push_back(entry.worker);
      used_[at(entry.worker)] = true;
      sums_[at(entry.worker)] += scale * entry.weight;
    }
  }

  std::vector<Entry> take() {
    std::vector<Entry> row;
    row.reserve(touched_.size());
    for (int worker : touched_) {
      row.push_back({worker, std::exchange(sums_[at(worker)], 0.0)});
      used_[at(worker)] = false;
    }
    touched_.clear();
    return row;
  }

 private:
  std::vector<double> sums_;
  std::vector<bool> used_;
  std::vector<int> touched_;
};

/// Every group of `fine` lies inside one group of `coarse`.
bool refines(const Round& fine, const Round& coarse) {
  std::vector<int> label(at(coarse.workers));
  for (std::size_t g = 0; g < coarse.groups.size(); ++g) {
    for (int member : coarse.groups[g]) label[at(member)] = static_cast<int>(g);
  }
  return std::all_of(fine.groups.begin(), fine.groups.end(), [&](const std::vector<int>& group) {
    return std::all_of(group.begin(), group.end(),
                       [&](int member) { return label[at(member)] == label[at(group[0])]; });
  });
}

/// The groups, where every row is the mean over a group that its worker is in.
std::optional<std::vector<std::vector<int>>> averaged_groups(
    const std::vector<std::vector<Entry>>& rows) {
  constexpr double kRounding = 1e-14;
  std::vector<std::vector<int>> groups;
  std::vector<std::size_t> group_of_first(rows.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double share = 1 / static_cast<double>(rows[i].size());
    std::vector<int> members;
    for (const Entry& entry : rows[i]) {
      if (std::abs(entry.weight - share) > kRounding * share) return std::nullopt;
      members.push_back(entry.worker);
    }
    std::ranges::sort(members);
    const auto worker = static_cast<int>(i);
    if (!std::ranges::binary_search(members, worker)) return std::nullopt;
    if (members.front() == worker) {
      group_of_first[i] = groups.size();
      groups.push_back(std::move(members));
      continue;
    }
    const std::size_t group = group_of_first[at(members.front())];
    if (group == rows.size() || groups[group] != members) return std::nullopt;
  }
  return groups;
}

}  // namespace

std::int64_t nonzeros(const Round& round) {
  std::int64_t count = 0;
  for (const auto& row : round.rows) count += static_cast<std::int64_t>(row.size());
  for (const auto& group : round.groups) {
    count += static_cast<std::int64_t>(group.size()) * static_cast<std::int64_t>(group.size());
  }
  return count;
}

Round product(const Round& later, const Round& earlier) {
  GOSSAMER_ASSERT(later.workers == earlier.workers);
  if (is_partition(later) && is_partition(earlier)) {
    if (refines(earlier, later)) return later;
    if (refines(later, earlier)) return earlier;
  }
  const auto second = rows_of(later);
  const auto first = rows_of(earlier);
  Accumulator sum(later.workers);
  std::vector<std::vector<Entry>> rows;
  rows.reserve(second.size());
  for (const std::vector<Entry>& row : second) {
    for (const Entry& entry : row) sum.add(first[at(entry.worker)], entry.weight);
    rows.push_back(sum.take());
  }
  if (auto groups = averaged_groups(rows)) {
    return partition_round(later.workers, std::move(*groups));
  }
  return sparse_round(later.workers, std::move(rows));
}

Round mean_round(int count, const std::function<Round(int)>& round_number) {
  GOSSAMER_ASSERT(count >= 1);
  if (count == 1) return round_number(0);
  std::vector<std::vector<Entry>> rows = rows_of(round_number(0));
  const int workers = static_cast<int>(rows.size());
  Accumulator sum(workers);
  for (int k = 1; k < count; ++k) {
    const auto added = rows_of(round_number(k));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      sum.add(rows[i], 1);
      sum.add(added[i], 1);
      rows[i] = sum.take();
    }
  }
  for (auto& row : rows) {
    for (Entry& entry : row) entry.weight /= count;
  }
  return sparse_round(workers, std::move(rows));
}

Round half_lazy(const Round& round) {
  const auto alone = [](const std::vector<int>& group) { return group.size() == 1; };
  if (is_partition(round) && std::all_of(round.groups.begin(), round.groups.end(), alone)) {
    return round;
  }
  std::vector<std::vector<Entry>> rows = rows_of(round);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (Entry& entry : rows[i]) entry.weight /= 2;
    rows[i].push_back({static_cast<int>(i), 0.5});
  }
  return sparse_round(round.workers, std::move(rows));
}

bool is_doubly_stochastic(const Round& round) {
  if (is_partition(round)) return true;
  const auto sums_to_one = [](double sum) { return std::abs(sum - 1) < 1e-9; };
  std::vector<double> columns(at(round.workers), 0.0);
  for (const auto& row : round.rows) {
    double sum = 0;
    for (const Entry& entry : row) {
      sum += entry.weight;
      columns[at(entry.worker)] += entry.weight;
      if (entry.weight < 0) return false;
    }
    if (!sums_to_one(sum)) return false;
  }
  return std::all_of(columns.begin(), columns.end(), sums_to_one);
}

bool is_symmetric(const Round& round) {
  if (is_partition(round)) return true;
  for (std::size_t i = 0; i < round.rows.size(); ++i) {
    for (const Entry& entry : round.rows[i]) {
      const auto& back = round.rows[at(entry.worker)];
      const auto found =
          std::lower_bound(back.begin(), back.end(), static_cast<int>(i),
                           [](const Entry& e, int worker) { return e.worker < worker; });
      if (found == back.end() || found->worker != static_cast<int>(i)) return false;
      if (std::abs(found->weight - entry.weight) > kSame) return false;
    }
  }
  return true;
}

std::optional<std::vector<Entry>> circulant_row(const Round& round) {
  if (is_partition(round) || round.workers == 0) return std::nullopt;
  const std::vector<Entry>& first = round.rows.front();
  const auto by_worker = [](const Entry& a, const Entry& b) { return a.worker < b.worker; };
  for (int i = 1; i < round.workers; ++i) {
    const std::vector<Entry>& row = round.rows[at(i)];
    if (row.size() != first.size()) return std::nullopt;
    std::vector<Entry> shifted = row;
    for (Entry& e : shifted) e.worker = (e.worker - i + round.workers) % round.workers;
    std::sort(shifted.begin(), shifted.end(), by_worker);
    for (std::size_t k = 0; k < first.size(); ++k) {
      const bool same = shifted[k].worker == first[k].worker &&
                        std::abs(shifted[k].weight - first[k].weight) <= kSame;
      if (!same) return std::nullopt;
    }
  }
  return first;
}

}  // namespace gossamer
