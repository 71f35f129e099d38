#include "gossamer/algo/pattern.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "gossamer/base/test_errors.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

Schedule make(const char* name, int n) { return make_topology(name, {.shape = even_hosts(n, 1)}); }

/// What is said of a combination; empty where it is allowed.
std::string refusal(const char* pattern, const char* optimizer, const Schedule& schedule,
                    const Hyper& hyper = {}) {
  try {
    check_pattern(find_pattern(pattern), optimizer, schedule, {&hyper, 1});
    return "";
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(Options, OfEveryPatternAreNumbersThatAreSetAndChecked) {
  for (const Pattern& pattern : patterns()) {
    for (const std::string_view option : pattern.options) {
      SCOPED_TRACE(option);
      Hyper hyper;
      set_option(hyper, option, 1 - (option == "outer_momentum"));
      EXPECT_NO_THROW(check_hyper(hyper));
      set_option(hyper, option, -1);
      const std::string said = message_of<std::invalid_argument>([&] { check_hyper(hyper); });
      expect_words(said, {std::string(option).c_str()});
    }
  }
}

TEST(CheckPattern, AnEigenvalueOnTheBorderIsTooLow) {
  expect_words(refusal("exact_diffusion", "sgd", make("ring", 8)),
               {"exact_diffusion", "ring", "above -0.333333", "lazy"});
  expect_words(refusal("exact_diffusion", "sgd", make("torus", 16)), {"torus", "lazy"});
  EXPECT_EQ(refusal("exact_diffusion", "sgd", make("ring", 9)), "");
  EXPECT_EQ(refusal("exact_diffusion", "sgd", lazy(make("ring", 8))), "");
  EXPECT_EQ(refusal("exact_diffusion", "sgd", make("complete", 8)), "");
  EXPECT_EQ(refusal("exact_diffusion", "sgd", make("ring", 1)), "");
  EXPECT_EQ(refusal("extra", "sgd", make("ring", 8)), "");
  // All of a worker of two comes from the other one.
  const Schedule swap =
      periodic_schedule("swap", even_hosts(2, 1), {sparse_round(2, {{{1, 1.0}}, {{0, 1.0}}})});
  expect_words(refusal("extra", "sgd", swap), {"extra", "above -1.0", "lazy"});
}

TEST(CheckPattern, WhatChangesOrIsDirectedIsRefusedWithAWayOut) {
  for (const char* pattern : {"exact_diffusion", "extra"}) {
    for (const char* topology : {"one_peer_ring", "exponential", "one_peer_exponential"}) {
      expect_words(refusal(pattern, "adamw", make(topology, 8)),
                   {pattern, topology, "gradient_tracking"});
    }
    EXPECT_NE(refusal(pattern, "sgd", with_global_average(lazy(make("ring", 8)), 4)), "");
    EXPECT_NE(refusal(pattern, "sgd", with_adaptive_global_average(lazy(make("ring", 8)), 4)), "");
  }
  for (const char* pattern : {"cwa", "atc", "gradient_tracking", "allreduce"}) {
    EXPECT_EQ(refusal(pattern, "adamw", make("one_peer_exponential", 8)), "") << pattern;
  }
}

TEST(OwnStep, GoesWithPatternsThatNeedNeitherGradientNorMomentum) {
  EXPECT_TRUE(find_pattern("cwa").own_step);
  EXPECT_FALSE(find_pattern("gradient_tracking").own_step);
  for (const Pattern& pattern : patterns()) {
    if (!pattern.own_step) continue;
    EXPECT_FALSE(pattern.averages_first) << pattern.name;
    EXPECT_TRUE(pattern.optimizers.empty()) << pattern.name;
    EXPECT_EQ(pattern.payloads[0], Payload::parameters) << pattern.name;
  }
}

TEST(CheckPattern, OuterStepsNeedTheAveragesThatTheyStandOn) {
  const Hyper every3{.outer_every = 3};
  const Schedule ring = make("ring", 8);
  expect_words(refusal("slowmo", "sgd", ring), {"slowmo", "outer_every = 0", "--outer-every"});
  expect_words(refusal("slowmo", "sgd", ring, every3), {"ring", "--global-average 3", "noloco"});
  expect_words(refusal("slowmo", "sgd", with_global_average(ring, 2), every3), {"global_average"});
  EXPECT_EQ(refusal("slowmo", "sgd", with_global_average(ring, 3), every3), "");
  EXPECT_EQ(refusal("slowmo", "sgd", with_global_average(make("random", 8), 3), every3), "");
  EXPECT_EQ(refusal("slowmo", "sgd", with_local_steps(make("complete", 8), 3), every3), "");
  EXPECT_EQ(refusal("slowmo", "sgd", make("ring", 1), every3), "");
  EXPECT_NE(refusal("slowmo", "sgd", with_adaptive_global_average(ring, 3), every3), "");
  EXPECT_EQ(refusal("noloco", "adamw", ring, every3), "");
  EXPECT_EQ(refusal("noloco", "adamw", with_local_steps(make("one_peer_ring", 8), 3), every3), "");
  EXPECT_EQ(refusal("noloco", "sgd", with_local_steps(ring, 2), {.outer_every = 1}), "");
}

TEST(CheckPattern, OnlyPushSumFollowsDirectedGraphsThatAreNotBalanced) {
  const Schedule directed = make("random_directed", 8);
  for (const Pattern& pattern : patterns()) {
    const std::string name(pattern.name);
    if (name == "push_sum" || name == "allreduce") continue;
    const std::string optimizer(pattern.optimizers.empty() ? "sgd" : pattern.optimizers.front());
    expect_words(refusal(name.c_str(), optimizer.c_str(), directed, {.outer_every = 2}),
                 {name.c_str(), "random_directed", "doubly stochastic", "push_sum"});
  }
  EXPECT_EQ(refusal("push_sum", "adamw", directed), "");
  EXPECT_EQ(refusal("push_sum", "adamw", make("ring", 8)), "");
}

TEST(CheckPattern, APatternThatMixesMomentaNeedsThem) {
  expect_words(refusal("dmsgd", "sgd", make("ring", 8)), {"dmsgd", "sgd", "momentum, adam"});
  expect_words(refusal("qg_dmsgd", "adam", make("ring", 8)), {"qg_dmsgd", "adam", "momentum"});
  EXPECT_EQ(refusal("dmsgd", "adam", make("ring", 8)), "");
  EXPECT_EQ(refusal("qg_dmsgd", "momentum", make("ring", 8)), "");
}

}  // namespace
}  // namespace gossamer
