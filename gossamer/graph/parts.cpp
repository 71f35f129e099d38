#include "gossamer/graph/parts.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"

namespace gossamer {
namespace {

constexpr std::int64_t kMostRows = 1 << 22;  ///< that are looked at
constexpr std::size_t kShownParts = 4;
constexpr std::size_t kShownRuns = 6;  ///< of consecutive workers, in a part

/// Union-find.
class Union {
 public:
  explicit Union(int workers) : parent_(at(workers)), parts_(workers) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }

  int parts() const { return parts_; }
  int first_of(int worker) {
    while (parent_[at(worker)] != worker) {
      parent_[at(worker)] = parent_[at(parent_[at(worker)])];
      worker = parent_[at(worker)];
    }
    return worker;
  }
  void join(int a, int b) {
    const auto [first, second] = std::minmax({first_of(a), first_of(b)});
    if (first == second) return;
    parent_[at(second)] = first;
    --parts_;
  }
  void join(const Round& round) {
    for (const auto& group : round.groups) {
      for (const int member : group) join(group.front(), member);
    }
    for (int i = 0; i < static_cast<int>(round.rows.size()); ++i) {
      for (const Entry& entry : round.rows[at(i)]) join(i, entry.worker);
    }
  }

 private:
  std::vector<int> parent_;  ///< never a later worker
  int parts_;
};

/// As "0 to 3, 7".
std::string words(const std::vector<int>& part) {
  std::string text;
  std::size_t runs = 0;
  for (std::size_t k = 0; k < part.size();) {
    std::size_t end = k + 1;
    while (end < part.size() && part[end] == part[end - 1] + 1) ++end;
    if (++runs > kShownRuns) return text + " and " + std::to_string(part.size() - k) + " more";
    if (k > 0) text += ", ";
    text += std::to_string(part[k]);
    if (end - k > 1) text += (end - k > 2 ? " to " : ", ") + std::to_string(part[end - 1]);
    k = end;
  }
  return text;
}

std::string words(const std::vector<std::vector<int>>& parts) {
  std::string text;
  for (std::size_t k = 0; k < std::min(parts.size(), kShownParts); ++k) {
    const char* workers = parts[k].size() == 1 ? "worker " : "workers ";
    text += (k == 0 ? "" : "; ") + std::string(workers) + words(parts[k]);
  }
  if (parts.size() <= kShownParts) return text;
  return text + "; and " + std::to_string(parts.size() - kShownParts) + " more parts";
}

}  // namespace

std::vector<std::vector<int>> parts_of(const Schedule& schedule) {
  const int workers = schedule.shape.workers();
  Union all(workers);
  // The last round first: a global average is there.
  for (std::int64_t t = schedule.period - 1; t >= 0 && all.parts() > 1; --t) {
    const bool goes_on = (schedule.period - t) * workers <= kMostRows;
    if (!goes_on || schedule.loss_driven) break;
    all.join(round_at(schedule, t));
    if (t == 0 && all.parts() > 1) {
      std::vector<std::vector<int>> by_first(at(workers));
      for (int w = 0; w < workers; ++w) by_first[at(all.first_of(w))].push_back(w);
      std::erase_if(by_first, [](const auto& part) { return part.empty(); });
      return by_first;
    }
  }
  std::vector<int> everybody(at(workers));
  std::iota(everybody.begin(), everybody.end(), 0);
  return {everybody};
}

int count_parts(const Schedule& schedule, std::int64_t rounds) {
  Union all(schedule.shape.workers());
  for (std::int64_t t = 0; t < rounds && all.parts() > 1; ++t) all.join(round_at(schedule, t));
  return all.parts();
}

void check_one_part(const Schedule& schedule) {
  const std::vector<std::vector<int>> parts = parts_of(schedule);
  const std::size_t count = parts.size();
  if (count == 1 || count == at(schedule.shape.workers())) return;
  const std::string rounds = schedule.period == 1
                                 ? "one round leaves "
                                 : std::to_string(schedule.period) + " rounds leave ";
  fail_argument({.place = "topology",
                 .what = "all workers must mix with each other, at least over several rounds",
                 .got = schedule.name + ", whose " + rounds + std::to_string(count) +
                        " parts apart: " + words(parts) +
                        "; each part would train a model of its own",
                 .remedy = "give weights between the parts, add a global average "
                           "(global_average), or start a job for each part"});
}

}  // namespace gossamer
