#include "gossamer/lab/transient.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

TransientSpec spec_of(const char* topology, int workers) {
  return {.schedule = make_topology(topology, {.shape = even_hosts(workers, 1)}),
          .factor = 1.1,
          .trials = 16};
}

TEST(Transient, GrowsWithTheRingAndIsNoneWhereAllAverage) {
  const auto small = transient_steps(spec_of("ring", 16));
  const auto large = transient_steps(spec_of("ring", 32));
  ASSERT_TRUE(small && large);
  EXPECT_GT(*large, 2 * *small);  // the theory's order is n³
  EXPECT_EQ(transient_steps(spec_of("complete", 16)), 2);
}

TEST(Transient, OfLogisticRegressionGrowsAsWell) {
  TransientSpec eight = spec_of("ring", 8);
  TransientSpec sixteen = spec_of("ring", 16);
  eight.problem = sixteen.problem = TransientProblem::logistic;
  const auto small = transient_steps(eight);
  const auto large = transient_steps(sixteen);
  ASSERT_TRUE(small && large);
  EXPECT_GT(*large, 2 * *small);
  EXPECT_GT(*large,
            *transient_steps(spec_of("ring", 16)));  // where curvature is four times as much
}

TEST(Transient, EndsWhereItMayNotGoOn) {
  TransientSpec spec = spec_of("ring", 32);
  spec.most_steps = 400;
  EXPECT_FALSE(transient_steps(spec).has_value());
}

TEST(Transient, ExponentsAreThoseOfPowers) {
  EXPECT_NEAR(growth_exponent({2, 4, 8}, {3 * 8., 3 * 64., 3 * 512.}), 3, 1e-12);
  EXPECT_TRUE(std::isnan(growth_exponent({2}, {4})));
}

TEST(Transient, TheFactorMustBeAboveOne) {
  TransientSpec spec = spec_of("ring", 4);
  spec.factor = 1;
  EXPECT_THROW(transient_steps(spec), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
