#include "gossamer/graph/push_sum.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <string>
#include <vector>

#include "gossamer/graph/dense.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

Schedule directed(int n, int degree = 1, std::uint64_t seed = 3) {
  return make_topology("random_directed",
                       {.shape = even_hosts(n, 1), .seed = seed, .degree = degree});
}

Eigen::VectorXd vector_of(const std::vector<double>& values) {
  return Eigen::Map<const Eigen::VectorXd>(values.data(), std::ssize(values));
}

/// v(t) from dense products.
Eigen::VectorXd pushed(const Schedule& schedule, int t) {
  Eigen::VectorXd v = Eigen::VectorXd::Ones(schedule.shape.workers());
  for (int k = 0; k < t; ++k) v = dense_matrix(round_at(schedule, k)) * v;
  return v;
}

TEST(PushSum, WeightsAreTheProductsOfTheRoundsAndSumToTheNumberOfWorkers) {
  for (int n : {1, 2, 5, 12}) {
    for (const Schedule& schedule :
         {directed(n), directed(n, 3), with_local_steps(lazy(directed(n)), 3),
          with_global_average(directed(n, 2), 5)}) {
      SCOPED_TRACE(schedule.name + ", " + std::to_string(n) + " workers");
      const Schedule rows = push_sum_rounds(schedule);
      for (int t = 0; t < 40; ++t) {
        const Eigen::VectorXd v = vector_of(rows.weights(t));
        EXPECT_NEAR(v.sum(), n, 1e-12);
        EXPECT_LT((v - pushed(schedule, t)).cwiseAbs().maxCoeff(), 1e-13);
      }
    }
  }
}

TEST(PushSum, RoundsAreRowStochasticAndConserveTheWeightedSum) {
  const Schedule rows = push_sum_rounds(directed(9, 2));
  EXPECT_EQ(rows.stochasticity, Stochasticity::row);
  Eigen::VectorXd x = Eigen::VectorXd::LinSpaced(9, -3, 5);
  const double sum = x.sum();
  for (int t = 0; t < 200; ++t) {
    check_stochastic(round_at(rows, t), Stochasticity::row);
    EXPECT_NEAR(vector_of(rows.weights(t)).dot(x), sum, 1e-12) << t;
    x = dense_matrix(round_at(rows, t)) * x;
  }
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(x[i], sum / 9, 1e-12);  // and so everybody has the mean
}

TEST(PushSum, IsAFunctionOfTheStepAlone) {
  const Schedule schedule = directed(7);
  const Schedule forwards = push_sum_rounds(schedule);
  std::vector<std::vector<double>> expected;
  for (int t = 0; t <= 700; ++t) expected.push_back(forwards.weights(t));
  const Schedule anyhow = push_sum_rounds(schedule);
  for (const std::size_t t : {700U, 3U, 256U, 255U, 699U, 0U, 512U, 640U, 5U}) {
    EXPECT_EQ(anyhow.weights(static_cast<std::int64_t>(t)), expected[t]) << t;
    EXPECT_EQ(forwards.weights(static_cast<std::int64_t>(t)), expected[t]) << t;
  }
  EXPECT_EQ(round_at(anyhow, 300), round_at(forwards, 300));
}

TEST(PushSum, LeavesDoublyStochasticSchedulesAsTheyAre) {
  const Schedule ring = make_topology("ring", {.shape = even_hosts(6, 1)});
  const Schedule same = push_sum_rounds(ring);
  EXPECT_EQ(same.period, 1);
  EXPECT_FALSE(same.weights);
  EXPECT_EQ(round_at(same, 0), round_at(ring, 0));
}

TEST(PushSum, RefusesWhatHasNoWeights) {
  EXPECT_THROW(push_sum_rounds(push_sum_rounds(directed(4))), std::invalid_argument);
  EXPECT_THROW(push_sum_rounds(with_adaptive_global_average(directed(4), 2)),
               std::invalid_argument);
  // Worker 1 keeps nothing and hears nothing.
  const Schedule deaf =
      periodic_schedule("deaf", even_hosts(2, 1), {sparse_round(2, {{{0, 1.0}, {1, 1.0}}, {}})},
                        Stochasticity::column);
  const Schedule rows = push_sum_rounds(deaf);
  EXPECT_NO_THROW(rows.weights(0));
  EXPECT_THROW(rows.weights(1), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
