#include "gossamer/recipe/rates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gossamer/recipe/recipe.h"

namespace gossamer {
namespace {

OptimizerSection with(LrSchedule schedule) {
  OptimizerSection optimizer;
  optimizer.lr_schedule = schedule;
  optimizer.warmup = 10;
  optimizer.final_lr = 0.2;
  return optimizer;
}

constexpr LrSchedule kAll[] = {LrSchedule::constant, LrSchedule::cosine, LrSchedule::inverse_sqrt};

TEST(LrFactor, RisesLinearlyToOne) {
  const RunSection run{.steps = 110};
  for (const LrSchedule schedule : kAll) {
    EXPECT_EQ(lr_factor(with(schedule), run, 1), 0.1) << name_of(schedule);
    EXPECT_EQ(lr_factor(with(schedule), run, 5), 0.5) << name_of(schedule);
    EXPECT_EQ(lr_factor(with(schedule), run, 10), 1) << name_of(schedule);
  }
}

TEST(LrFactor, FollowsItsFormulaAfterTheWarmUp) {
  const RunSection run{.steps = 110};
  EXPECT_EQ(lr_factor(with(LrSchedule::constant), run, 110), 1);
  EXPECT_NEAR(lr_factor(with(LrSchedule::cosine), run, 60), 0.2 + 0.8 / 2, 1e-12);
  EXPECT_NEAR(lr_factor(with(LrSchedule::cosine), run, 110), 0.2, 1e-12);
  EXPECT_NEAR(lr_factor(with(LrSchedule::inverse_sqrt), run, 40), 0.5, 1e-12);
}

TEST(ConsensusFactor, FollowsTheLearningRateForDsgdAcOnly) {
  AlgorithmSection algorithm{.consensus = 0.5, .consensus_power = 2};
  EXPECT_EQ(consensus_factor(algorithm, 0.1), 0.5);
  algorithm.pattern = &find_pattern("dsgd_ac");
  EXPECT_NEAR(consensus_factor(algorithm, 0.1), 0.5 * 0.01, 1e-12);
}

}  // namespace
}  // namespace gossamer
