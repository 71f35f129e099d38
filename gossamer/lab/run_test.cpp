#include "gossamer/lab/run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

Schedule ring(int workers) { return make_topology("ring", {.shape = even_hosts(workers, 1)}); }

double last_error(const Problem& problem, LabOptions options) {
  options.record_every = options.steps;
  return run_lab(problem, problem.minimiser(), options).back().error;
}

/// Reductions: with everybody's average all are the same method; without any, nobody is helped.
TEST(Run, MethodsReduceToOneAnother) {
  const auto problem =
      make_logistic({.workers = 6, .dimension = 3, .samples = 50, .heterogeneity = 1});
  const LabOptions base{.schedule = complete_schedule(even_hosts(6, 1)), .steps = 300};
  LabOptions other = base;
  other.pattern = "allreduce";
  const double parallel = last_error(*problem, other);
  EXPECT_NEAR(last_error(*problem, base), parallel, 1e-13);
  other = base;
  other.schedule = with_global_average(ring(6), 1);
  EXPECT_NEAR(last_error(*problem, other), parallel, 1e-13);
  other.schedule = with_local_steps(base.schedule, 1);
  EXPECT_NEAR(last_error(*problem, other), parallel, 1e-13);
  other.schedule = with_global_average(ring(6), 1'000'000);
  LabOptions gossip = base;
  gossip.schedule = ring(6);
  EXPECT_EQ(last_error(*problem, other), last_error(*problem, gossip));
  // Exact-Diffusion's correction is 0 in the first step, and for ever among workers that agree.
  gossip.schedule = other.schedule = lazy(ring(6));
  gossip.steps = other.steps = 1;
  other.pattern = "exact_diffusion";
  EXPECT_EQ(last_error(*problem, other), last_error(*problem, gossip));
}

TEST(Run, TheMeanIsPreservedWhateverTheGraph) {
  const auto problem = make_quadratic({.dimension = 2, .centres = std::vector<double>(20, 3.0)});
  for (const char* topology : {"ring", "star", "one_peer_exponential", "aer", "random"}) {
    const LabOptions options{.schedule = make_topology(topology, {.shape = even_hosts(10, 1)}),
                             .steps = 50,
                             .record_every = 50};
    // All start at 0 and have the same centre: plain gradient descent, 3 (1 − .9^50) in each
    // element.
    const Point last = run_lab(*problem, problem->minimiser(), options).back();
    EXPECT_NEAR(last.mean_error, 2 * std::pow(3 * std::pow(0.9, 50), 2), 1e-12) << topology;
    EXPECT_NEAR(last.disagreement, 0, 1e-24) << topology;
  }
}

TEST(Run, PushSumBringsEveryWorkerToTheMinimiserOnDirectedGraphs) {
  std::vector<double> centres;
  for (int i = 0; i < 10; ++i) centres.insert(centres.end(), {1.0 * i, 2.0});
  const auto same = make_quadratic({.dimension = 2, .centres = std::vector<double>(20, 3.0)});
  const LabOptions options{
      .schedule = make_topology("random_directed", {.shape = even_hosts(10, 1), .degree = 2}),
      .pattern = "push_sum",
      .steps = 400,
      .record_every = 400};
  EXPECT_LT(run_lab(*same, same->minimiser(), options).back().error, 1e-24);
  // With unequal centres and small steps, too; averages with A alone would weigh some twice.
  const auto unequal = make_quadratic({.dimension = 2, .centres = centres});
  LabOptions slow = options;
  slow.step_size = {.first = 0.1, .decay = 20};
  slow.steps = slow.record_every = 20'000;
  EXPECT_LT(run_lab(*unequal, unequal->minimiser(), slow).back().mean_error, 1e-4);
}

TEST(Run, TrialsDifferAndThreadsChangeNothing) {
  const auto problem = make_logistic({.workers = 4, .dimension = 3, .samples = 30});
  const LabOptions options{.schedule = ring(4), .steps = 200, .record_every = 50};
  const auto one = run_trials(*problem, problem->minimiser(), options, 5, 1);
  const auto four = run_trials(*problem, problem->minimiser(), options, 5, 4);
  for (std::size_t trial = 0; trial < one.size(); ++trial) {
    ASSERT_EQ(one[trial].size(), 4u);
    for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(one[trial][k].error, four[trial][k].error);
  }
  EXPECT_NE(one[0].back().error, one[1].back().error);
  const Curve curve = curve_of(one, &Point::error);
  EXPECT_EQ(curve.step.back(), 200);
  EXPECT_GT(curve.error.back(), 0);
}

TEST(Run, StepSizesFallAsTold) {
  EXPECT_EQ(at({.first = 0.2}, 5000), 0.2);
  EXPECT_EQ(at({.first = 0.2, .factor = 0.5, .every = 1000}, 2999), 0.05);
  EXPECT_DOUBLE_EQ(at({.first = 0.1, .decay = 10}, 30), 0.025);
}

TEST(Run, WhatDoesNotFitIsRefused) {
  const auto problem = make_logistic({.workers = 4, .dimension = 3, .samples = 30});
  const auto x = problem->minimiser();
  EXPECT_THROW(run_lab(*problem, x, {.schedule = ring(5)}), std::invalid_argument);
  EXPECT_THROW(run_lab(*problem, x, {.schedule = ring(4), .steps = 0}), std::invalid_argument);
  EXPECT_THROW(run_lab(*problem, x, {.schedule = ring(4), .pattern = "exact_diffusion"}),
               std::invalid_argument);  // its least eigenvalue is −1/3
  EXPECT_THROW(run_lab(*problem, x, {.schedule = ring(4), .step_size = {.first = -1}}),
               std::invalid_argument);
}

/// AGA's distances follow the loss: the smaller it gets, the rarer the averages, but not never.
TEST(Run, AdaptiveAveragesBoundDisagreement) {
  const auto problem =
      make_logistic({.workers = 30, .dimension = 5, .samples = 100, .heterogeneity = 1});
  LabOptions options{.schedule = ring(30), .step_size = {.first = 0.5}, .steps = 2000};
  options.record_every = 7;
  const auto mean_disagreement = [&](Schedule schedule) {
    options.schedule = std::move(schedule);
    double sum = 0;
    const auto points = run_lab(*problem, problem->minimiser(), options);
    for (const Point& point : points)
      sum += point.disagreement / static_cast<double>(points.size());
    return sum;
  };
  const double gossip = mean_disagreement(ring(30));
  EXPECT_LT(mean_disagreement(with_adaptive_global_average(ring(30), 4)), 0.5 * gossip);
}

}  // namespace
}  // namespace gossamer
