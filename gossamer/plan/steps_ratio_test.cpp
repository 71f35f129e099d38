#include "gossamer/plan/steps_ratio.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gossamer/graph/topology.h"
#include "gossamer/model/convergence.h"

namespace gossamer {
namespace {

double ratio_of(std::string_view name, const HostShape& shape, const Target& target) {
  const MethodSpec candidate = parse_method(name);
  ClusterSpec cluster;
  for (int workers : shape.workers_per_host) {
    cluster.hosts.push_back({.workers = workers, .link = {}, .inside = {}});
  }
  const double rho = lasting_rho(sim_method(candidate, cluster).schedule);
  return steps_ratio(candidate, {.workers = shape.workers(), .rho = rho}, target).ratio;
}

// Errors over parallel SGD's that were measured for decentralized momentum SGD, n = 32, after 5700
// steps.
TEST(StepsRatio, FollowsTheErrorsOfDecentralizedMomentumSgd) {
  const Target target{.steps = 5700, .optimizer = "momentum"};
  const HostShape shape = even_hosts(8, 4);
  EXPECT_NEAR(ratio_of("exponential", shape, target), 1.01, 0.01);
  EXPECT_NEAR(ratio_of("one_peer_exponential", shape, target), 1.03, 0.015);
  EXPECT_NEAR(ratio_of("aer", shape, target), 1.03, 0.01);
  EXPECT_NEAR(ratio_of("torus", shape, target), 1.09, 0.02);
  EXPECT_NEAR(ratio_of("one_peer_ring", shape, target), 4.5, 1);
  EXPECT_GT(ratio_of("ring", shape, target), 5);
}

TEST(StepsRatio, OfAllReduceAndOfOneWorkerIsThatOfTheCodec) {
  const Target target{.steps_ratio = 2};
  EXPECT_EQ(ratio_of("ddp", even_hosts(4, 1), target), 1);
  EXPECT_EQ(ratio_of("allreduce:bf16", even_hosts(4, 1), target), 1.005);
  EXPECT_EQ(ratio_of("ring", even_hosts(1, 1), {}), 1);
}

TEST(StepsRatio, WhatWasMeasuredWins) {
  EXPECT_DOUBLE_EQ(ratio_of("ring", even_hosts(32, 1), {.steps_ratio = 1.3}), 1.3);
}

TEST(StepsRatio, SkippedPayloadsMakeTheGraphSparser) {
  const MethodSpec candidate = parse_method("ring:skip");
  const Target target{.steps = 10000, .steps_ratio = 1.2};
  const auto ratio = [&](double taken) {
    return steps_ratio(candidate, {.workers = 8, .rho = 0.8, .taken = taken}, target).ratio;
  };
  EXPECT_DOUBLE_EQ(ratio(1), 1.2);
  // rho/(1 - rho) of .9 instead of .8.
  EXPECT_NEAR(ratio(0.5), 1.2 + 0.22 * 8 * (9 * 9 - 4 * 4) / 10000, 1e-9);
  EXPECT_TRUE(std::isinf(steps_ratio(candidate, {8, 0.8, 0}, {.steps_ratio = 0}).ratio));
}

TEST(StepsRatio, AdamPaysForNoiseOnly) {
  const HostShape shape = even_hosts(8, 1);
  const double unknown = ratio_of("complete", shape, {.optimizer = "adamw"});
  EXPECT_DOUBLE_EQ(unknown, 1.15);
  EXPECT_EQ(ratio_of("complete", shape, {.optimizer = "sgd"}), 1);
  const Target large{.global_batch = 8000, .noise_scale = 10, .optimizer = "adamw"};
  EXPECT_LT(ratio_of("complete", shape, large), 1.002);
  const Target small{.global_batch = 8, .noise_scale = 1000, .optimizer = "adamw"};
  EXPECT_NEAR(ratio_of("complete", shape, small), 1.15, 1e-3);
}

TEST(StepsRatio, IsKnownOnlyOfWhatWasMeasured) {
  const MethodSpec candidate{.pattern = "exact_diffusion"};
  EXPECT_FALSE(is_measured(candidate));
  const StepsRatio unknown = steps_ratio(candidate, {.workers = 8, .rho = 0.8}, {.steps = 1000});
  EXPECT_TRUE(std::isnan(unknown.ratio));
  EXPECT_TRUE(unknown.parts.empty());
  EXPECT_DOUBLE_EQ(steps_ratio(candidate, {.workers = 8, .rho = 0.8}, {.steps_ratio = 1.3}).ratio,
                   1.3);
}

TEST(StepsRatio, SaysWhatItDoesNotCount) {
  const auto limits = [](const char* name, const Target& target) {
    return limits_of_ratio(parse_method(name), target);
  };
  EXPECT_TRUE(limits("allreduce:int8", {}).empty());
  EXPECT_TRUE(limits("aer:local=4", {.steps_ratio = 1.2}).empty());
  EXPECT_EQ(limits("aer", {}).size(), 1u);
  const std::vector<std::string> both = limits("aer:local=4", {.optimizer = "momentum"});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_NE(both[0].find("10.5 %"), std::string::npos);
  EXPECT_NE(both[1].find("local steps"), std::string::npos);
}

TEST(AveragedWorkers, AreThoseInTheMeanWhereWeightsAreEqual) {
  const auto averaged = [](const char* topology, const HostShape& shape) {
    return averaged_workers(make_topology(topology, {.shape = shape}));
  };
  EXPECT_NEAR(averaged("ring", even_hosts(9, 1)), 3, 1e-12);
  EXPECT_NEAR(averaged("torus", even_hosts(16, 1)), 5, 1e-12);
  EXPECT_NEAR(averaged("complete", even_hosts(5, 2)), 10, 1e-12);
  EXPECT_NEAR(averaged("one_peer_exponential", even_hosts(8, 1)), 2, 1e-12);
  EXPECT_EQ(averaged_workers(alone_schedule(even_hosts(4, 1))), 1);
}

TEST(StepsRatio, FewerMixesAndSparserGraphsNeedMoreSteps) {
  const HostShape shape = even_hosts(16, 1);
  const Target target{.optimizer = "sgd"};
  EXPECT_LT(ratio_of("complete", shape, target), ratio_of("complete:local=4", shape, target));
  EXPECT_LT(ratio_of("aer", shape, target), ratio_of("aer:local=4", shape, target));
  EXPECT_LT(ratio_of("exponential", shape, target), ratio_of("ring", shape, target));
  EXPECT_LT(ratio_of("ring:average=8", shape, target), ratio_of("ring", shape, target));
}

}  // namespace
}  // namespace gossamer
