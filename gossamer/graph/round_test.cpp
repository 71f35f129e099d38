#include "gossamer/graph/round.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "gossamer/base/test_errors.h"

namespace gossamer {
namespace {

using Rows = std::vector<std::vector<Entry>>;

TEST(SparseRound, SortsSendersMergesRepeatedOnesAndDropsZeros) {
  const Round round =
      sparse_round(3, {{{2, 0.25}, {0, 0.5}, {2, 0.25}, {1, 0}}, {{1, 1}}, {{2, 1}}});
  EXPECT_EQ(round.rows[0], (std::vector<Entry>{{0, 0.5}, {2, 0.5}}));
}

TEST(SparseRound, RefusesWorkersOutOfRangeAndWeightsThatAreNotFinite) {
  EXPECT_THROW(sparse_round(2, {{{2, 1.0}}, {{1, 1.0}}}), std::invalid_argument);
  EXPECT_THROW(sparse_round(2, {{{-1, 1.0}}, {{1, 1.0}}}), std::invalid_argument);
  EXPECT_THROW(sparse_round(1, {{{0, std::numeric_limits<double>::quiet_NaN()}}}),
               std::invalid_argument);
  EXPECT_THROW(sparse_round(2, {{{0, 1.0}}}), std::invalid_argument);
}

TEST(PartitionRound, RefusesWorkersInTwoGroupsOrInNone) {
  EXPECT_THROW(partition_round(3, {{0, 1}, {1, 2}}), std::invalid_argument);
  EXPECT_THROW(partition_round(3, {{0, 1, 3}}), std::invalid_argument);
  EXPECT_NE(
      message_of<std::invalid_argument>([] { partition_round(3, {{0, 1}}); }).find("worker 2"),
      std::string::npos);
}

TEST(PartitionRound, RowsGiveEqualWeightsInsideTheGroup) {
  const Round round = partition_round(4, {{3, 0, 2}, {1}, {}});
  EXPECT_EQ(round.groups, (std::vector<std::vector<int>>{{0, 2, 3}, {1}}));
  EXPECT_EQ(row_of(round, 3), (std::vector<Entry>{{0, 1. / 3}, {2, 1. / 3}, {3, 1. / 3}}));
  EXPECT_EQ(self_weight(round, 1), 1);
  EXPECT_EQ(group_of(round, 2), (std::vector<int>{0, 2, 3}));
}

TEST(IdentityAndCompleteRounds, KeepOwnAndAverageAll) {
  EXPECT_EQ(row_of(identity_round(3), 1), (std::vector<Entry>{{1, 1.0}}));
  EXPECT_EQ(row_of(complete_round(2), 1), (std::vector<Entry>{{0, 0.5}, {1, 0.5}}));
}

TEST(CheckStochastic, NamesTheFirstRowOrColumnThatDoesNotSumToOne) {
  const Round row_only = sparse_round(2, {{{0, 0.5}, {1, 0.5}}, {{1, 1.0}}});
  check_stochastic(row_only, Stochasticity::row);
  EXPECT_NE(message_of<std::invalid_argument>([&] {
              check_stochastic(row_only, Stochasticity::doubly);
            }).find("column 0"),
            std::string::npos);
  const Round column_only = sparse_round(2, {{{0, 0.5}}, {{0, 0.5}, {1, 1.0}}});
  check_stochastic(column_only, Stochasticity::column);
  EXPECT_NE(message_of<std::invalid_argument>([&] {
              check_stochastic(column_only, Stochasticity::row);
            }).find("row 0"),
            std::string::npos);
  const Round negative = sparse_round(2, {{{0, 1.5}, {1, -0.5}}, {{0, -0.5}, {1, 1.5}}});
  EXPECT_THROW(check_stochastic(negative, Stochasticity::doubly), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
