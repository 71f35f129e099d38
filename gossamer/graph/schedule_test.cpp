#include "gossamer/graph/schedule.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace gossamer {
namespace {

TEST(PeriodicSchedule, RepeatsItsRoundsInTurn) {
  const Round a = complete_round(4);
  const Round b = identity_round(4);
  const Schedule schedule = periodic_schedule("ab", even_hosts(2, 2), {a, b});
  EXPECT_EQ(schedule.period, 2);
  for (std::int64_t t : {0, 2, 1000000}) EXPECT_EQ(round_at(schedule, t), a);
  for (std::int64_t t : {1, 3, 1000001}) EXPECT_EQ(round_at(schedule, t), b);
}

TEST(PeriodicSchedule, RefusesNoRoundsOtherSizesAndOtherSums) {
  EXPECT_THROW(periodic_schedule("none", even_hosts(1, 2), {}), std::invalid_argument);
  EXPECT_THROW(periodic_schedule("size", even_hosts(1, 2), {complete_round(3)}),
               std::invalid_argument);
  const Round row_only = sparse_round(2, {{{0, 0.5}, {1, 0.5}}, {{1, 1.0}}});
  EXPECT_THROW(periodic_schedule("sums", even_hosts(1, 2), {row_only}), std::invalid_argument);
  EXPECT_NO_THROW(periodic_schedule("sums", even_hosts(1, 2), {row_only}, Stochasticity::row));
}

TEST(RoundAt, GivesStepsBeyondThePeriodOnlyToSchedulesWithoutOne) {
  std::int64_t seen = -1;
  Schedule schedule = periodic_schedule("one", even_hosts(1, 1), {identity_round(1)});
  schedule.round = [&seen](std::int64_t t, std::span<const AgreedLoss>) {
    seen = t;
    return identity_round(1);
  };
  schedule.period = 3;
  round_at(schedule, 7);
  EXPECT_EQ(seen, 1);
  schedule.period = 0;
  round_at(schedule, 7);
  EXPECT_EQ(seen, 7);
}

TEST(IsAlone, OnlyWhereNobodyEverReceives) {
  EXPECT_TRUE(is_alone(alone_schedule(even_hosts(2, 2))));
  EXPECT_TRUE(is_alone(complete_schedule(even_hosts(1, 1))));
  EXPECT_FALSE(is_alone(complete_schedule(even_hosts(1, 2))));
  const Round last = sparse_round(3, {{{0, 1}}, {{1, 1}}, {{0, 0.5}, {2, 0.5}}});
  EXPECT_FALSE(is_alone(periodic_schedule("last", even_hosts(1, 3), {last}, Stochasticity::row)));
  EXPECT_FALSE(is_alone(
      periodic_schedule("later", even_hosts(1, 2), {identity_round(2), complete_round(2)})));
}

}  // namespace
}  // namespace gossamer
