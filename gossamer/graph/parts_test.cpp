#include "gossamer/graph/parts.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace parts_test {

using Parts = std::vector<std::vector<int>>;

/// Two pairs of four workers, or three.
Schedule pairs(int count) {
  std::vector<std::vector<int>> groups;
  for (int k = 0; k < count; ++k) groups.push_back({2 * k, 2 * k + 1});
  return periodic_schedule("pairs", even_hosts(2 * count, 1),
                           {partition_round(2 * count, std::move(groups))});
}

std::string refusal(const Schedule& schedule) {
  try {
    check_one_part(schedule);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(PartsOf, IsOneForAllTopologiesSizesAndModifiers) {
  for (const Topology& topology : topologies()) {
    for (int n = 1; n <= 33; ++n) {
      const std::vector<HostShape> shapes =
          n % 3 == 0 ? std::vector{even_hosts(n, 1), even_hosts(n / 3, 3)}
                     : std::vector{even_hosts(n, 1)};
      for (const HostShape& shape : shapes) {
        SCOPED_TRACE(std::string(topology.name) + " n=" + std::to_string(n));
        Schedule schedule;
        try {
          schedule = make_topology(topology.name, {.shape = shape, .seed = 5});
        } catch (const std::invalid_argument&) {  // so many it cannot serve
          continue;
        }
        EXPECT_EQ(parts_of(schedule).size(), 1U);
        const bool is_doubly = schedule.stochasticity == Stochasticity::doubly;
        for (const Schedule& modified :
             {with_local_steps(schedule, 7), with_global_average(schedule, 32),
              with_adaptive_global_average(schedule, 4),
              is_doubly ? lazy(with_rounds_per_step(schedule, 2)) : schedule}) {
          EXPECT_EQ(refusal(modified), "") << modified.name;
        }
      }
    }
  }
}

TEST(PartsOf, AreWhatNoRoundJoins) {
  EXPECT_EQ(parts_of(pairs(2)), (Parts{{0, 1}, {2, 3}}));
  const HostShape four = even_hosts(4, 1);
  const Round crossed = partition_round(4, {{0, 3}, {1}, {2}});
  const Round outer =
      sparse_round(4, {{{0, 0.5}, {3, 0.5}}, {{1, 1}}, {{2, 1}}, {{0, 0.5}, {3, 0.5}}});
  EXPECT_EQ(parts_of(periodic_schedule("one", four, {crossed})), (Parts{{0, 3}, {1}, {2}}));
  EXPECT_EQ(parts_of(periodic_schedule("same", four, {outer})), (Parts{{0, 3}, {1}, {2}}));
  EXPECT_EQ(parts_of(periodic_schedule("two", four, {round_at(pairs(2), 0), outer})).size(), 1U);
}

TEST(CheckOnePart, NamesPartsAndPassesLocalTrainingAndGlobalAverages) {
  EXPECT_EQ(refusal(pairs(2)),
            "[topology] all workers must mix with each other, at least over several rounds, got "
            "pairs, whose one round leaves 2 parts apart: workers 0, 1; workers 2, 3; each part "
            "would train a model of its own; give weights between the parts, add a global average "
            "(global_average), or start a job for each part");
  EXPECT_EQ(refusal(alone_schedule(even_hosts(3, 1))), "");
  EXPECT_EQ(refusal(pairs(1)), "");
  EXPECT_EQ(refusal(with_global_average(pairs(2), 1'000'000)), "");
  EXPECT_EQ(refusal(with_adaptive_global_average(pairs(2), 100)), "");
  EXPECT_NE(refusal(with_local_steps(pairs(2), 1000)), "");
}

TEST(CheckOnePart, ShowsALimitedNumberOfThem) {
  const std::string many = refusal(pairs(300));
  EXPECT_NE(many.find("leaves 300 parts apart: workers 0, 1; workers 2, 3; workers 4, 5; workers "
                      "6, 7; and 296 more parts;"),
            std::string::npos)
      << many;
  std::vector<int> even;
  std::vector<int> odd;
  for (int w = 0; w < 40; ++w) (w % 2 == 0 ? even : odd).push_back(w);
  const std::string apart =
      refusal(periodic_schedule("sides", even_hosts(40, 1), {partition_round(40, {even, odd})}));
  EXPECT_NE(apart.find("workers 0, 2, 4, 6, 8, 10 and 14 more; workers 1, 3"), std::string::npos)
      << apart;
}

}  // namespace parts_test
}  // namespace gossamer
