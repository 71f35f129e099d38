#include "gossamer/model/dadam_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace gossamer {
namespace {

/// Numbers whose roots and quotients are round: 1 − β₁ = ¾, 1 − β₂ = ¼, 1 − β₁/β₂ = ⅔.
DAdamSetting round_numbers() {
  return {.step_size = 0.5,
          .beta1 = 0.25,
          .beta2 = 0.75,
          .epsilon = 0.25,
          .steps = 10 + 1.0 / 3,
          .parameters = 3,
          .gradient_bound = 2,
          .smoothness = 4,
          .excess_loss = 5,
          .lambda = 0.5};
}

TEST(DAdamBound, EveryTermWorkedByHand) {
  const DAdamBound bound = dadam_bound(round_numbers());
  EXPECT_DOUBLE_EQ(bound.optimization, 4 * 2 / (0.5 * 10) * 5);
  EXPECT_DOUBLE_EQ(bound.noise, 24 * 3 * 4 * std::sqrt(0.75) / (0.5 * std::pow(2.0 / 3, 1.5)));
  EXPECT_DOUBLE_EQ(bound.curvature, 2 * 0.5 * 3 * 4 * 2 * 0.75 / (0.25 * 2 / 3));
  EXPECT_DOUBLE_EQ(bound.momentum, 4 * 0.25 * 16 * 3 * 0.25 / (2.0 / 3 * 0.125));
  EXPECT_DOUBLE_EQ(bound.disagreement, 8 * 0.25 * 1.25 * 2 * 16 * 3 * std::sqrt(0.75) /
                                           (0.5625 * 0.25 * (2.0 / 3) * 0.5));
  EXPECT_DOUBLE_EQ(bound.per_step,
                   std::log(1 + 2 / 0.0625) / 10 - (10 + 1.0 / 3) / 10 * std::log(0.75));
  EXPECT_DOUBLE_EQ(bound.total(),
                   bound.optimization + bound.per_step * (bound.noise + bound.curvature +
                                                          bound.momentum + bound.disagreement));
}

TEST(DAdamBound, DecentralizationCostsOnlyItsOwnTermAndFallsWithTheStepSquared) {
  DAdamSetting setting = round_numbers();
  const DAdamBound before = dadam_bound(setting);
  setting.lambda = 0.9;
  const DAdamBound weaker = dadam_bound(setting);
  EXPECT_EQ(weaker.noise, before.noise);
  EXPECT_EQ(weaker.curvature, before.curvature);
  EXPECT_EQ(weaker.momentum, before.momentum);
  EXPECT_DOUBLE_EQ(weaker.disagreement / before.disagreement,
                   (1.81 / std::pow(0.19, 2)) / (1.25 / std::pow(0.75, 2)));
  setting.step_size /= 10;
  EXPECT_DOUBLE_EQ(dadam_bound(setting).disagreement, weaker.disagreement / 100);
  setting.lambda = 1;
  EXPECT_TRUE(std::isinf(dadam_bound(setting).total()));
}

TEST(DAdamBound, RefusesWhatTheTheoremDoesNotCover) {
  const auto refused = [](auto change) {
    DAdamSetting setting = round_numbers();
    change(setting);
    EXPECT_THROW(dadam_bound(setting), std::invalid_argument);
  };
  refused([](DAdamSetting& s) { s.beta1 = s.beta2; });
  refused([](DAdamSetting& s) { s.beta1 = 0; });
  refused([](DAdamSetting& s) { s.beta2 = 1; });
  refused([](DAdamSetting& s) { s.steps = 1.0 / 3; });
  refused([](DAdamSetting& s) { s.epsilon = 0; });
  refused([](DAdamSetting& s) { s.lambda = 1.5; });
  refused([](DAdamSetting& s) { s.step_size = std::nan(""); });
  refused([](DAdamSetting& s) { s.steps = INFINITY; });
}

TEST(DAdamBound, TermsAddUpToTheBound) {
  const DAdamBound bound = dadam_bound(round_numbers());
  double sum = 0;
  for (const DAdamTerm& term : dadam_terms()) {
    sum += bound.*term.value * (term.times_per_step ? bound.per_step : 1);
  }
  EXPECT_DOUBLE_EQ(sum, bound.total());
  EXPECT_EQ(dadam_terms().size(), 5U);
}

TEST(DAdamBound, IsHeldAgainstWhatIsKnownAtTheStart) {
  DAdamSetting setting = round_numbers();
  EXPECT_DOUBLE_EQ(known_at_start(setting), 3 * 2 * 2);  // D R², below 2 · 4 · 5
  setting.excess_loss = 0.5;
  EXPECT_DOUBLE_EQ(known_at_start(setting), 2 * 4 * 0.5);
  EXPECT_EQ(verdict_on(dadam_bound(setting), setting), BoundVerdict::vacuous);
  setting.lambda = 1;
  EXPECT_EQ(verdict_on(dadam_bound(setting), setting), BoundVerdict::infinite);
  setting.smoothness = 0;
  EXPECT_EQ(verdict_on(dadam_bound(setting), setting), BoundVerdict::infinite);
  // Few parameters, many steps, β₂ close to 1 and a small step.
  const DAdamSetting good{.step_size = 1e-5,
                          .beta1 = 0.01,
                          .beta2 = 1 - 1e-9,
                          .epsilon = 1,
                          .steps = 1e13,
                          .parameters = 1,
                          .gradient_bound = 100,
                          .smoothness = 1e-3,
                          .excess_loss = 1e6,
                          .lambda = 0.5};
  EXPECT_EQ(verdict_on(dadam_bound(good), good), BoundVerdict::informative);
}

}  // namespace
}  // namespace gossamer
