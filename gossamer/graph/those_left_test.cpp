#include "gossamer/graph/those_left.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"
#include "gossamer/graph/algebra.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace those_left_test {

/// Positions of `left` of them, chosen at random.
std::vector<int> some(int workers, int left, Rng& rng) {
  std::vector<int> all;
  for (int k = 0; k < workers; ++k) all.push_back(k);
  while (std::ssize(all) > left) {
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(rng.below(all.size())));
  }
  return all;
}

std::vector<Schedule> all_schedules(int workers) {
  std::vector<Schedule> all;
  for (const Topology& topology : topologies()) {
    try {
      all.push_back(make_topology(topology.name, {.shape = even_hosts(workers, 1)}));
    } catch (const std::invalid_argument&) {  // so many it cannot serve
    }
  }
  return all;
}

TEST(Among, KeepsWhatSumsToOneForAllTopologiesAndSizes) {
  Rng rng(3);
  for (int workers = 2; workers <= 64; workers += workers < 10 ? 1 : 9) {
    for (const Schedule& schedule : all_schedules(workers)) {
      const int left = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(workers)));
      const std::vector<int> positions = some(workers, left, rng);
      const Schedule those = among(schedule, positions, even_hosts(left, 1));
      ASSERT_EQ(those.shape.workers(), left);
      const std::int64_t rounds = std::min(schedule.period > 0 ? schedule.period : 8, 8);
      for (std::int64_t t = 0; t < rounds; ++t) {
        SCOPED_TRACE(schedule.name + ", " + std::to_string(left) + " of " +
                     std::to_string(workers));
        const Round before = round_at(schedule, t);
        const Round after = round_at(those, t);
        if (is_symmetric(before)) {
          EXPECT_TRUE(is_symmetric(after));
          EXPECT_TRUE(is_doubly_stochastic(after));
        } else if (schedule.stochasticity == Stochasticity::column) {
          EXPECT_NO_THROW(check_stochastic(after, Stochasticity::column));
        } else {
          EXPECT_NO_THROW(check_stochastic(after, Stochasticity::row));
        }
      }
    }
  }
}

TEST(Among, LeavesWeightsBetweenThoseThatAreLeftAsTheyWere) {
  const Schedule ring = make_topology("ring", {.shape = even_hosts(6, 1)});
  const Round round = round_at(among(ring, {0, 1, 3, 4, 5}, even_hosts(5, 1)), 0);
  const double third = 1. / 3;
  const auto expect_row = [&](int worker, const std::vector<Entry>& right) {
    const std::vector<Entry> row = row_of(round, worker);
    ASSERT_EQ(row.size(), right.size());
    for (std::size_t k = 0; k < row.size(); ++k) {
      EXPECT_EQ(row[k].worker, right[k].worker);
      EXPECT_NEAR(row[k].weight, right[k].weight, 1e-15);
    }
  };
  expect_row(0, {{0, third}, {1, third}, {4, third}});
  expect_row(1, {{0, third}, {1, 2 * third}});  // its neighbour 2 is lost
  expect_row(2, {{2, 2 * third}, {3, third}});  // likewise, and it was worker 3
}

TEST(Among, GroupsAverageThoseThatAreLeft) {
  const Schedule all = complete_schedule(even_hosts(4, 1));
  EXPECT_EQ(round_at(among(all, {0, 2, 3}, even_hosts(3, 1)), 0), complete_round(3));
}

TEST(IsConnected, TellsWholeSchedulesFromParts) {
  for (const Schedule& schedule : all_schedules(8)) EXPECT_TRUE(is_connected(schedule));
  const Schedule ring = make_topology("ring", {.shape = even_hosts(6, 1)});
  EXPECT_TRUE(is_connected(among(ring, {0, 1, 2, 4, 5}, even_hosts(5, 1))));
  EXPECT_FALSE(is_connected(among(ring, {0, 1, 3, 4}, even_hosts(4, 1))));
  EXPECT_FALSE(is_connected(alone_schedule(even_hosts(2, 1))));
}

TEST(ScheduleOn, IsTheSameForOtherHosts) {
  const HostShape eight = even_hosts(8, 1);
  const HostShape five = even_hosts(5, 1);
  const auto whole = [](const HostShape& shape) {
    return with_global_average(
        with_local_steps(with_rounds_per_step(lazy(make_topology("ring", {.shape = shape})), 2), 3),
        4);
  };
  const Schedule other = whole(eight).on(five);
  const Schedule right = whole(five);
  EXPECT_EQ(other.name, right.name);
  EXPECT_EQ(other.period, right.period);
  for (std::int64_t t = 0; t < right.period; ++t) EXPECT_EQ(round_at(other, t), round_at(right, t));
  EXPECT_THROW(make_topology("hypercube", {.shape = eight}).on(five), std::invalid_argument);
  EXPECT_FALSE(periodic_schedule("mine", eight, {identity_round(8)}).on);
}

}  // namespace those_left_test
}  // namespace gossamer
