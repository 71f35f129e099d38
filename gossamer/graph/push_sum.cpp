#include "gossamer/graph/push_sum.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

using Weights = std::vector<double>;

/// A v.
Weights push(const Round& round, const Weights& v) {
  Weights result;
  result.reserve(v.size());
  for (int i = 0; i < round.workers; ++i) {
    double sum = 0;
    for (const Entry& entry : row_of(round, i)) {
      sum += entry.weight * v[static_cast<std::size_t>(entry.worker)];
    }
    result.push_back(sum);
  }
  return result;
}

/// v(t), found once and kept for a while.
class WeightsInTime {
 public:
  WeightsInTime(Schedule schedule, std::int64_t first)
      : schedule_(std::move(schedule)), first_(first) {
    known_.emplace(first, Weights(static_cast<std::size_t>(schedule_.shape.workers()), 1.0));
  }

  Weights at(std::int64_t t) {
    if (t <= first_) return Weights(static_cast<std::size_t>(schedule_.shape.workers()), 1.0);
    const std::lock_guard lock(mutex_);
    auto found = std::prev(known_.upper_bound(t));
    while (found->first < t) {
      const std::int64_t next = found->first + 1;
      Weights v = push(round_at(schedule_, found->first), found->second);
      check(v, next);
      found = known_.insert_or_assign(next, std::move(v)).first;
      forget(next - kKept);
    }
    return found->second;
  }

  const Schedule& schedule() const { return schedule_; }

 private:
  static constexpr std::int64_t kKept = 64;       // longer than buckets are staggered, mostly
  static constexpr std::int64_t kLandmark = 256;  // these stay, for who comes back

  void forget(std::int64_t t) {
    if (t > first_ && t % kLandmark != 0) known_.erase(t);
  }

  void check(const Weights& v, std::int64_t t) const {
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (v[i] > 0) continue;
      fail_argument({.place = "graph",
                     .what = "with push-sum every worker must keep or hear something",
                     .got = "nothing for worker " + std::to_string(i) + " in round " +
                            std::to_string(t - 1) + " of " + schedule_.name,
                     .remedy = "let every worker keep a share of its own"});
    }
  }

  const Schedule schedule_;
  const std::int64_t first_;
  std::mutex mutex_;  // guards known_
  std::map<std::int64_t, Weights> known_;
};

Round weighed(const Round& round, const Weights& before, const Weights& after) {
  std::vector<std::vector<Entry>> rows;
  for (int i = 0; i < round.workers; ++i) {
    rows.push_back(row_of(round, i));
    for (Entry& entry : rows.back()) {
      entry.weight *=
          before[static_cast<std::size_t>(entry.worker)] / after[static_cast<std::size_t>(i)];
    }
  }
  return sparse_round(round.workers, std::move(rows));
}

}  // namespace

Schedule push_sum_rounds(Schedule schedule, std::int64_t first) {
  if (schedule.stochasticity == Stochasticity::doubly) return schedule;
  if (schedule.stochasticity == Stochasticity::row || schedule.loss_driven) {
    fail_argument({.place = "graph",
                   .what = "push-sum needs columns of W that sum to 1, whatever the losses",
                   .got = schedule.name,
                   .remedy = "give what a worker sends shares that sum to 1, or leave out "
                             "adaptive_average"});
  }
  const auto weights = std::make_shared<WeightsInTime>(schedule, first);
  return {.name = schedule.name,
          .shape = schedule.shape,
          .period = 0,
          .stochasticity = Stochasticity::row,
          .round =
              [weights](std::int64_t t, std::span<const AgreedLoss>) {
                return weighed(round_at(weights->schedule(), t), weights->at(t),
                               weights->at(t + 1));
              },
          .weights = [weights](std::int64_t t) { return weights->at(t); }};
}

}  // namespace gossamer
