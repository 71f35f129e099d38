#include "gossamer/graph/those_left.h"

#include <algorithm>
#include <string>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/graph/parts.h"

namespace gossamer {
namespace {

constexpr int kLost = -1;

/// By former position: the new one.
std::vector<int> counted_anew(int workers, const std::vector<int>& positions) {
  std::vector<int> all(at(workers), kLost);
  int count = 0;
  for (const int position : positions) all[at(position)] = count++;
  return all;
}

Round groups_among(const Round& round, const std::vector<int>& position_of, int left) {
  std::vector<std::vector<int>> groups;
  for (const auto& members : round.groups) {
    std::vector<int> group;
    for (const int member : members) {
      if (position_of[at(member)] != kLost) group.push_back(position_of[at(member)]);
    }
    if (!group.empty()) groups.push_back(std::move(group));
  }
  return partition_round(left, std::move(groups));
}

Round rows_among(const Round& round, const std::vector<int>& position_of, int left,
                 bool sender_keeps) {
  std::vector<std::vector<Entry>> rows(at(left));
  for (int receiver = 0; receiver < round.workers; ++receiver) {
    const int to = position_of[at(receiver)];
    for (const Entry& entry : row_of(round, receiver)) {
      const int from = position_of[at(entry.worker)];
      if (to != kLost && from != kLost) rows[at(to)].push_back({from, entry.weight});
      if (to != kLost && from == kLost && !sender_keeps) rows[at(to)].push_back({to, entry.weight});
      if (to == kLost && from != kLost && sender_keeps) {
        rows[at(from)].push_back({from, entry.weight});
      }
    }
  }
  return sparse_round(left, std::move(rows));
}

}  // namespace

Schedule among(Schedule schedule, std::vector<int> positions, const HostShape& shape) {
  GOSSAMER_ASSERT(shape.workers() == std::ssize(positions));
  Schedule result = schedule;
  result.name += " without " + std::to_string(schedule.shape.workers() - shape.workers());
  result.shape = shape;
  result.on = nullptr;
  result.weights = nullptr;
  std::vector<int> position_of = counted_anew(schedule.shape.workers(), positions);
  const int left = shape.workers();
  const bool sender_keeps = schedule.stochasticity == Stochasticity::column;
  result.round = [inner = std::move(schedule), position_of = std::move(position_of), left,
                  sender_keeps](std::int64_t t, std::span<const AgreedLoss> losses) {
    const Round round = round_at(inner, t, losses);
    return is_partition(round) ? groups_among(round, position_of, left)
                               : rows_among(round, position_of, left, sender_keeps);
  };
  return result;
}

std::int64_t rounds_looked_at(const Schedule& schedule) {
  constexpr std::int64_t kIfTheyNeverRepeat = 64;
  return schedule.period > 0 ? schedule.period : kIfTheyNeverRepeat;
}

/// Both ways: where sums of columns or of rows are 1, what goes one way comes back another way.
bool is_connected(const Schedule& schedule) {
  return count_parts(schedule, rounds_looked_at(schedule)) == 1;
}

}  // namespace gossamer
