#include "gossamer/graph/modifiers.h"

#include <gtest/gtest.h>

#include <Eigen/Core>
#include <numeric>
#include <stdexcept>

#include "gossamer/graph/algebra.h"
#include "gossamer/graph/dense.h"
#include "gossamer/graph/spectra.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace modifiers_test {

Schedule make(const char* name, int n) { return make_topology(name, {.shape = even_hosts(n, 1)}); }

void expect_same(const Round& a, const Eigen::MatrixXd& b) {
  EXPECT_LT((dense_matrix(a) - b).cwiseAbs().maxCoeff(), 1e-14);
}

/// The smallest period that the first `count` rounds show.
int seen_period(const Schedule& schedule, int count) {
  for (int period = 1; period < count; ++period) {
    bool repeats = true;
    for (int t = 0; t + period < count && repeats; ++t) {
      repeats = schedule.round(t, {}) == schedule.round(t + period, {});
    }
    if (repeats) return period;
  }
  return 0;
}

TEST(GlobalAverage, ReplacesEveryHthRoundAndKeepsTheOthersInPlace) {
  const Schedule inner = make("hypercube", 8);
  const Schedule schedule = with_global_average(inner, 4);
  EXPECT_EQ(schedule.period, 12);
  for (int t = 0; t < 24; ++t) {
    const Round expected = t % 4 == 3 ? complete_round(8) : round_at(inner, t);
    EXPECT_EQ(round_at(schedule, t), expected) << t;
  }
  EXPECT_TRUE(exact_average(schedule));
  EXPECT_THROW(with_global_average(inner, 0), std::invalid_argument);
}

TEST(GlobalAverage, InEveryStepIsTheCompleteGraph) {
  const Schedule schedule = with_global_average(make("random", 6), 1);
  EXPECT_EQ(schedule.period, 1);
  EXPECT_EQ(round_at(schedule, 9), complete_round(6));
}

TEST(GlobalAverage, HasNoPeriodWhereTheCommonOneDoesNotFitAnInt) {
  EXPECT_EQ(with_global_average(make("hypercube", 8), 2147483647).period, 0);
  EXPECT_EQ(with_global_average(make("random", 8), 5).period, 0);
  EXPECT_EQ(with_global_average(make("ring", 8), 2147483647).period, 2147483647);
}

TEST(AdaptiveGlobalAverage, ChoosesTheDistanceByTheFourthRootOfTheLossRatio) {
  EXPECT_EQ(adaptive_distance(16, 1, 4), 8);
  EXPECT_EQ(adaptive_distance(16, 16, 4), 4);
  EXPECT_EQ(adaptive_distance(2, 1, 4), 5);  // 4 · 1.189 = 4.76
  EXPECT_EQ(adaptive_distance(1, 16, 4), 2);
  EXPECT_EQ(adaptive_distance(1, 1e12, 4), 1);
  for (double unusable : {0., -1., std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(adaptive_distance(1, unusable, 4), 4);
  }
}

TEST(AdaptiveGlobalAverage, FollowsTheLossesAndAnswersForEarlierStepsAsItDidThen) {
  const Schedule schedule = with_adaptive_global_average(make("ring", 5), 3);
  EXPECT_TRUE(schedule.loss_driven);
  EXPECT_EQ(schedule.period, 0);
  const Round all = complete_round(5);
  const std::vector<AgreedLoss> losses{{0, 16.0}, {3, 1.0}, {9, 1.0 / 16}};
  // Global averages end steps 3, 3 + 2·3 = 9 and 9 + 4·3 = 21.
  for (int t = 0; t < 30; ++t) {
    std::vector<AgreedLoss> known;
    for (const AgreedLoss& loss : losses) {
      if (loss.step <= t) known.push_back(loss);
    }
    const bool expected = t == 2 || t == 8 || t == 20;
    EXPECT_EQ(round_at(schedule, t, known) == all, expected) << t;
    EXPECT_EQ(round_at(schedule, t, losses), round_at(schedule, t, known)) << t;
  }
  for (int t = 0; t < 9; ++t) EXPECT_EQ(round_at(schedule, t) == all, t % 3 == 2) << t;
}

TEST(LocalSteps, MixEveryHthStepAndAdvanceByOneRoundThen) {
  const Schedule inner = make("hypercube", 8);
  const Schedule schedule = with_local_steps(inner, 4);
  EXPECT_EQ(schedule.period, 12);
  for (int t = 0; t < 24; ++t) {
    const Round expected = t % 4 == 3 ? round_at(inner, t / 4) : identity_round(8);
    EXPECT_EQ(round_at(schedule, t), expected) << t;
  }
  EXPECT_TRUE(exact_average(schedule));
}

TEST(LocalSteps, CountLossesInMixingSteps) {
  const Schedule schedule = with_local_steps(with_adaptive_global_average(make("ring", 5), 2), 3);
  // Mixing steps 0, 1, … are steps 2, 5, …; the global average of mixing step 1 ends step 6, and
  // with 16 times less loss the next is 4 mixing steps later, at the end of step 18.
  const std::vector<AgreedLoss> losses{{0, 16.0}, {6, 1.0}};
  for (int t = 0; t < 18; ++t) {
    EXPECT_EQ(round_at(schedule, t, losses) == complete_round(5), t == 5 || t == 17) << t;
  }
}

TEST(Lazy, IsTheMeanWithTheIdentity) {
  for (const char* name : {"ring", "one_peer_ring", "base_k", "exponential"}) {
    const Schedule inner = make(name, 7);
    const Schedule schedule = lazy(inner);
    EXPECT_EQ(schedule.period, inner.period);
    for (int t = 0; t < schedule.period; ++t) {
      const Eigen::MatrixXd w = dense_matrix(round_at(inner, t));
      expect_same(round_at(schedule, t), (Eigen::MatrixXd::Identity(7, 7) + w) / 2);
    }
  }
}

TEST(RoundsPerStep, AreProductsOfConsecutiveRounds) {
  for (const char* name : {"one_peer_exponential", "base_k", "ring", "one_peer_ring"}) {
    for (int count : {1, 2, 3, 6}) {
      const Schedule inner = make(name, 13);
      const Schedule schedule = with_rounds_per_step(inner, count);
      EXPECT_EQ(schedule.period, inner.period / std::gcd(inner.period, count));
      for (int t = 0; t < 2 * schedule.period; ++t) {
        Eigen::MatrixXd total = Eigen::MatrixXd::Identity(13, 13);
        for (int k = 0; k < count; ++k) {
          total = dense_matrix(round_at(inner, t * count + k)) * total;
        }
        expect_same(round_at(schedule, t), total);
      }
    }
  }
}

TEST(Modifiers, DeclareThePeriodThatTheirRoundsShow) {
  const Schedule inner = make("hypercube", 16);
  EXPECT_EQ(seen_period(with_global_average(inner, 6), 40), 12);
  EXPECT_EQ(with_global_average(inner, 6).period, 12);
  EXPECT_EQ(seen_period(with_local_steps(inner, 3), 40), 12);
  EXPECT_EQ(with_local_steps(inner, 3).period, 12);
  EXPECT_EQ(seen_period(with_rounds_per_step(inner, 2), 40), 2);
  EXPECT_EQ(with_rounds_per_step(inner, 2).period, 2);
}

TEST(Modifiers, StayAsStochasticInAnyOrder) {
  for (const Topology& topology : topologies()) {
    const Schedule inner = topology.make({.shape = even_hosts(4, 2)});
    for (const Schedule& schedule :
         {lazy(with_rounds_per_step(inner, 2)), with_local_steps(with_global_average(inner, 3), 2),
          with_rounds_per_step(with_local_steps(lazy(inner), 2), 3)}) {
      for (int t = 0; t < 12; ++t) {
        EXPECT_EQ(schedule.stochasticity, topology.stochasticity);
        EXPECT_NO_THROW(check_stochastic(round_at(schedule, t), topology.stochasticity))
            << schedule.name;
      }
    }
  }
}

/// The Kronecker product of W between hosts and the average inside a host.
Eigen::MatrixXd kron_average(const Eigen::MatrixXd& hosts, int per_host) {
  Eigen::MatrixXd all(hosts.rows() * per_host, hosts.cols() * per_host);
  for (Eigen::Index i = 0; i < all.rows(); ++i) {
    for (Eigen::Index j = 0; j < all.cols(); ++j) {
      all(i, j) = hosts(i / per_host, j / per_host) / per_host;
    }
  }
  return all;
}

TEST(AcrossHosts, IsTheKroneckerProductWithTheInsideAverageForEqualHosts) {
  for (const Topology& topology : topologies()) {
    const Schedule between = topology.make({.shape = even_hosts(4, 1)});
    if (topology.stochasticity == Stochasticity::column) {
      EXPECT_THROW(across_hosts(between, even_hosts(4, 3)), std::invalid_argument);
      continue;
    }
    const Schedule schedule = across_hosts(between, even_hosts(4, 3));
    EXPECT_EQ(schedule.period, between.period);
    for (int t = 0; t < 4; ++t) {
      expect_same(round_at(schedule, t), kron_average(dense_matrix(round_at(between, t)), 3));
    }
  }
}

TEST(AcrossHosts, IsDoublyStochasticAndContractsForUnequalHosts) {
  for (const Topology& topology : topologies()) {
    if (topology.stochasticity != Stochasticity::doubly) continue;
    const HostShape shape{{1, 5, 2, 3}};
    const Schedule schedule = across_hosts(topology.make({.shape = even_hosts(4, 1)}), shape);
    for (int t = 0; t < 4; ++t) {
      const Round round = round_at(schedule, t);
      check_stochastic(round, Stochasticity::doubly);
      // Everybody on a host ends with the same.
      const Eigen::MatrixXd w = dense_matrix(round);
      for (int i = 1; i < 11; ++i) {
        if (shape.host_of(i) != shape.host_of(i - 1)) continue;
        EXPECT_EQ(w.row(i), w.row(i - 1));
      }
    }
    EXPECT_LT(period_contraction(schedule), 0.99) << topology.name;
  }
}

TEST(AcrossHosts, RefusesAnotherNumberOfHosts) {
  EXPECT_THROW(across_hosts(make("ring", 3), even_hosts(4, 2)), std::invalid_argument);
  Schedule directed = make("ring", 3);
  directed.stochasticity = Stochasticity::row;
  EXPECT_NO_THROW(across_hosts(directed, even_hosts(3, 2)));
  EXPECT_THROW(across_hosts(directed, {{1, 2, 3}}), std::invalid_argument);
}

TEST(Product, KeepsPartitionsThatSplitEachOther) {
  const Round coarse = partition_round(4, {{0, 1, 2}, {3}});
  const Round fine = partition_round(4, {{0, 1}, {2}, {3}});
  EXPECT_EQ(product(coarse, fine), coarse);
  EXPECT_EQ(product(fine, coarse), coarse);
  const Round other = partition_round(4, {{0, 3}, {1, 2}});
  expect_same(product(other, fine), dense_matrix(other) * dense_matrix(fine));
}

TEST(Product, IsAPartitionWhereTwoRoundsAverageOverGroups) {
  const auto pairs = [](std::vector<std::vector<int>> groups) {
    return partition_round(6, std::move(groups));
  };
  const Round near = pairs({{0, 1}, {2, 3}, {4}, {5}});
  const Round far = pairs({{0, 2}, {1, 3}, {4, 5}});
  EXPECT_EQ(product(far, near), partition_round(6, {{0, 1, 2, 3}, {4, 5}}));
  const Round apart = pairs({{0, 2}, {1, 4}, {3, 5}});
  EXPECT_FALSE(is_partition(product(apart, near)));
  expect_same(product(apart, near), dense_matrix(apart) * dense_matrix(near));
  for (const HostShape& shape : {even_hosts(4, 2), even_hosts(4, 4), even_hosts(4, 1)}) {
    const Schedule aer = make_topology("aer", {.shape = shape});
    const Schedule twice = with_rounds_per_step(aer, 2);
    EXPECT_EQ(round_at(twice, 0).groups.size(), 2);
    EXPECT_EQ(round_at(twice, 1).groups.size(), 2);
    EXPECT_TRUE(is_global_average(round_at(with_rounds_per_step(aer, 4), 0)));
  }
}

TEST(CirculantRow, IsFoundInRingsAndNotInGrids) {
  EXPECT_TRUE(circulant_row(round_at(make("ring", 9), 0)).has_value());
  EXPECT_FALSE(circulant_row(round_at(make("grid", 9), 0)).has_value());
}

}  // namespace modifiers_test
}  // namespace gossamer
