#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "gossamer/base/rng.h"
#include "gossamer/graph/spectra.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

Schedule fitted(const HostShape& shape, std::vector<double> rates) {
  return make_topology("fitted", {.shape = shape, .link_rates = std::move(rates)});
}

/// By host, how many rounds of [from, to) it shares a group with another one.
std::vector<int> turns_of(const Schedule& schedule, int from, int to) {
  const HostShape& shape = schedule.shape;
  std::vector<int> turns(shape.workers_per_host.size(), 0);
  for (int t = from; t < to; ++t) {
    for (const auto& group : round_at(schedule, t).groups) {
      const int first = shape.host_of(group.front());
      const int last = shape.host_of(group.back());
      if (first == last) continue;
      ++turns[static_cast<std::size_t>(first)];
      ++turns[static_cast<std::size_t>(last)];
    }
  }
  return turns;
}

TEST(Fitted, WithEqualLinksIsAsOftenInPairsAsAer) {
  for (int hosts : {2, 4, 8}) {
    const Schedule schedule = fitted(even_hosts(hosts, 2), {});
    const auto turns = turns_of(schedule, 0, schedule.period);
    EXPECT_EQ(turns, std::vector(static_cast<std::size_t>(hosts), schedule.period / 2)) << hosts;
  }
  EXPECT_TRUE(exact_average(fitted(even_hosts(4, 3), {})));
}

TEST(Fitted, ALinkOfAQuarterOfTheRateHasAQuarterOfTheTurns) {
  const Schedule schedule = fitted(even_hosts(4, 2), {20, 20, 20, 5});
  ASSERT_EQ(schedule.period % 8, 0);
  // With eight staggered buckets, this is every step.
  for (int t = 0; t < schedule.period; ++t) {
    const std::vector<int> turns = turns_of(schedule, t, t + 8);
    EXPECT_EQ(turns[3], 1) << t;
    for (int host = 0; host < 3; ++host) EXPECT_LE(turns[static_cast<std::size_t>(host)], 5) << t;
    EXPECT_GE(turns[0] + turns[1] + turns[2], 6) << t;
  }
  EXPECT_LT(period_contraction(schedule), 0.6);
}

TEST(Fitted, NobodyHasMoreTurnsThanTheLinkAllows) {
  Rng rng(5);
  for (int k = 0; k < 100; ++k) {
    const auto hosts = 1 + static_cast<int>(rng.below(12));
    HostShape shape;
    std::vector<double> rates;
    for (int h = 0; h < hosts; ++h) {
      shape.workers_per_host.push_back(1 + static_cast<int>(rng.below(3)));
      rates.push_back(1 + 30 * rng.uniform());
    }
    const Schedule schedule = fitted(shape, rates);
    const double fastest = std::ranges::max(rates);
    const std::vector<int> turns = turns_of(schedule, 0, schedule.period);
    for (std::size_t h = 0; h < rates.size(); ++h) {
      // At the end of a period up to two turns are left over from what is saved.
      EXPECT_LE(turns[h], rates[h] / fastest * schedule.period / 2 + 2) << k;
    }
    EXPECT_LT(period_contraction(schedule), 0.999) << k;
  }
}

TEST(Fitted, SlowHostsDoNotComeAllAtOnce) {
  const Schedule schedule = fitted(even_hosts(8, 1), {8, 8, 8, 8, 1, 1, 1, 1});
  int most = 0;
  for (int t = 0; t < schedule.period; t += 2) {
    const std::vector<int> turns = turns_of(schedule, t, t + 2);
    most = std::max(most, turns[4] + turns[5] + turns[6] + turns[7]);
  }
  EXPECT_LE(most, 2);
}

TEST(Fitted, RatesMustBeOnePerHostAndPositive) {
  EXPECT_THROW(fitted(even_hosts(3, 1), {1, 2}), std::invalid_argument);
  EXPECT_THROW(fitted(even_hosts(2, 1), {1, 0}), std::invalid_argument);
  EXPECT_THROW(fitted(even_hosts(2, 1), {1, -1}), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
