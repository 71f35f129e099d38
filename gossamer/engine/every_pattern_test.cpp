/// What holds for every row of the table of patterns, and what patterns become in special cases.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/index.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/push_sum.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

using namespace engine_case;  // NOLINT: all of it is about this test

constexpr int kEvery = 3;

/// Something that the pattern goes with.
Case case_of(const Pattern& pattern, const HostShape& shape = even_hosts(3, 2)) {
  Case c;
  Schedule& schedule = c.options.schedule;
  schedule = lazy(make_topology("ring", {.shape = shape}));
  if (pattern.weighs) {
    schedule = make_topology("random_directed", {.shape = shape, .seed = 5, .degree = 2});
  }
  if (pattern.outer == Outer::global_average) schedule = with_global_average(schedule, kEvery);
  c.options.pattern = pattern.name;
  c.options.optimizer = pattern.optimizers.empty() ? "adamw" : pattern.optimizers.front();
  c.options.groups = {{.lr = 0.03,
                       .weight_decay = 0.01,
                       .noise_share = 0.3,
                       .momentum = 0.8,
                       .consensus = 0.7,
                       .outer_every = kEvery,
                       .outer_momentum = 0.6,
                       .outer_lr = 0.8}};
  c.bucket_sizes = {40, 30, 9};
  c.group_of.assign(79, 0);
  c.steps = 8;
  return c;
}

Case case_of(const std::string& pattern) { return case_of(find_pattern(pattern)); }

Case on(Case c, Schedule schedule) {
  c.options.schedule = std::move(schedule);
  return c;
}

/// One worker's bytes of all that a checkpoint keeps.
using Saved = std::vector<std::vector<std::byte>>;

/// Runs steps [from, to) on every worker, from what was saved where there is something; saves.
Matrix run_between(const Case& c, std::int64_t from, std::int64_t to, std::vector<Saved>& saved) {
  Matrix result(saved.size());
  const Gradient gradient = quadratics(7);
  run_workers(make_threads_transports(free_links(c.shape())), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    Saved& own = saved[at(rank)];
    const auto model = first_model<double>(c);
    Engine engine(c.options, transport, model->buckets(c));
    std::vector<StateVector> state = engine.state();
    for (std::size_t k = 0; k < own.size(); ++k) std::ranges::copy(own[k], state[k].bytes.begin());
    from == 0 ? engine.start() : engine.start_at(from);
    for (std::int64_t step = from; step < to; ++step) {
      model->set_gradient(gradient(rank, step, model->x));
      engine.step();
    }
    engine.quiesce();
    own.clear();
    for (const StateVector& v : engine.state()) own.emplace_back(v.bytes.begin(), v.bytes.end());
    engine.collectives().barrier();
    result[at(rank)] = model->x;
  });
  return result;
}

TEST(EveryPattern, GoesOnBitForBitFromWhatACheckpointKeeps) {
  for (const Pattern& pattern : patterns()) {
    SCOPED_TRACE(pattern.name);
    const Case c = case_of(pattern);
    std::vector<Saved> whole(6);
    std::vector<Saved> halves(6);
    const Matrix expected = run_between(c, 0, 8, whole);
    run_between(c, 0, 4, halves);
    EXPECT_EQ(run_between(c, 4, 8, halves), expected);
    EXPECT_EQ(halves, whole);
  }
}

TEST(EveryPattern, EqualsTheDenseOracleOnOneWorkerAndOnHostsOfOne) {
  for (const Pattern& pattern : patterns()) {
    for (const HostShape& shape : {even_hosts(1, 1), even_hosts(2, 1)}) {
      SCOPED_TRACE(pattern.name);
      const Case c = case_of(pattern, shape);
      EXPECT_LT(
          largest_difference(engine_run<double>(c, quadratics(3)), oracle_run(c, quadratics(3))),
          1e-12);
    }
  }
}

/// Two ends of an equation; both run on quadratics with noise.
void expect_equal_runs(const Case& a, const Case& b, double tolerance) {
  const Gradient gradient = quadratics(4);
  EXPECT_LE(largest_difference(engine_run<double>(a, gradient), engine_run<double>(b, gradient)),
            tolerance)
      << a.options.pattern << " and " << b.options.pattern;
}

TEST(SlowMo, WithoutMomentumAndWithRateOneIsPlainAveragingBitForBit) {
  for (const char* pattern : {"slowmo", "noloco"}) {
    Case c = case_of(pattern);
    c.options.groups[0].outer_momentum = 0;
    c.options.groups[0].outer_lr = 1;
    Case plain = c;
    plain.options.pattern = "atc";
    expect_equal_runs(c, plain, 0);
    c.options.groups[0].outer_momentum = 0.1;
    EXPECT_GT(largest_difference(engine_run<double>(c, quadratics(4)),
                                 engine_run<double>(plain, quadratics(4))),
              1e-4);
  }
}

TEST(NoLoCo, IsSlowMoWhereEverybodyAverages) {
  const Schedule complete = make_topology("complete", {.shape = even_hosts(3, 2)});
  const Schedule ring = make_topology("ring", {.shape = even_hosts(3, 2)});
  for (const Schedule& schedule :
       {with_local_steps(complete, kEvery), with_global_average(ring, kEvery)}) {
    expect_equal_runs(on(case_of("noloco"), schedule), on(case_of("slowmo"), schedule), 1e-13);
  }
}

/// The authors' recursion on f = x²/2 for one worker, with u in units of the distance covered.
TEST(SlowMo, GoesOnWithTheDistanceCoveredWhenTheLearningRateChanges) {
  Case c = on(case_of("slowmo"), make_topology("complete", {.shape = even_hosts(1, 1)}));
  c.options.optimizer = "sgd";
  c.options.groups[0].weight_decay = 0;
  c.bucket_sizes = {1};
  c.group_of = {0};
  const Hyper hyper = c.options.groups[0];
  run_workers(make_threads_transports(free_links(c.shape())), [&](Transport& transport) {
    const auto model = first_model<double>(c);
    Engine engine(c.options, transport, model->buckets(c));
    engine.start();
    double x = model->x[0];
    double anchor = x;
    double u = 0;
    for (int step = 0; step < 20; ++step) {
      const double lr = step < 7 ? 0.1 : 0.02;
      engine.groups()[0].lr = lr;
      model->g[0] = model->x[0];
      engine.step();
      x -= lr * x;
      if ((step + 1) % kEvery == 0) {
        u = hyper.outer_momentum * u + (anchor - x);
        x = anchor -= hyper.outer_lr * u;
      }
      ASSERT_NEAR(model->x[0], x, 1e-15) << step;
    }
  });
}

TEST(DsgdAc, WithFullConsensusIsCwaBitForBit) {
  for (const bool spares : {false, true}) {
    Case c = case_of("dsgd_ac");
    c.options.groups[0].consensus = 1;
    c.spares = spares;
    Case cwa = c;
    cwa.options.pattern = "cwa";
    expect_equal_runs(c, cwa, 0);
  }
}

TEST(GradientGossip, IsAllReduceWhereTheRoundsOfAStepReachAll) {
  const HostShape shape = even_hosts(4, 2);
  for (const UpdateAt update : {UpdateAt::step, UpdateAt::backward}) {
    Case c = case_of(find_pattern("gradient_gossip"), shape);
    c.options.schedule = with_rounds_per_step(make_topology("aer", {.shape = shape}), 4);
    c.options.update = update;
    Case all = c;
    all.options.pattern = "allreduce";
    expect_equal_runs(c, all, 1e-12);
    const Case one = on(c, make_topology("aer", {.shape = shape}));
    EXPECT_GT(largest_difference(engine_run<double>(one, quadratics(4)),
                                 engine_run<double>(all, quadratics(4))),
              1e-4);
  }
}

TEST(PushSum, OnDoublyStochasticRoundsIsAtcBitForBit) {
  for (const char* topology : {"aer", "one_peer_exponential", "random"}) {
    const Case c =
        on(case_of("push_sum"), make_topology(topology, {.shape = even_hosts(3, 2), .seed = 2}));
    Case atc = c;
    atc.options.pattern = "atc";
    expect_equal_runs(c, atc, 0);
  }
}

Case sgd_case(const std::string& pattern) {
  Case c = case_of(pattern);
  c.options.optimizer = "sgd";
  c.options.groups[0].weight_decay = 0;
  c.steps = 40;
  return c;
}

/// Gradients that do not depend on x.
Gradient noise() {
  return [](int worker, std::int64_t step, const std::vector<double>& x) {
    std::vector<double> g(x.size());
    for (std::size_t k = 0; k < x.size(); ++k) {
      g[k] = Rng(k, static_cast<std::uint64_t>(10 * step + worker)).normal();
    }
    return g;
  };
}

TEST(PushSum, ConservesTheWeightedSumOnDirectedGraphsThatChange) {
  const Case c = sgd_case("push_sum");
  const Schedule rows = push_sum_rounds(c.options.schedule);
  const std::vector<double> start = first_model<double>(c)->x;
  run_looking(c, noise(), [&](std::int64_t step, Engine& engine, Model<double>& model) {
    const auto rank = static_cast<std::size_t>(engine.collectives().rank());
    std::vector<double> expected = start;
    for (std::int64_t s = 0; s < step; ++s) {
      for (int i = 0; i < 6; ++i) {
        const std::vector<double> g = noise()(i, s, start);
        for (std::size_t k = 0; k < g.size(); ++k) expected[k] -= 0.03 * g[k] / 6;
      }
    }
    std::vector<double> mean = model.x;
    std::vector<double> weights(mean.size());
    std::size_t k = 0;
    for (std::size_t b = 0; b < c.bucket_sizes.size(); ++b) {
      const double v = rows.weights(step + static_cast<std::int64_t>(b))[rank];
      for (std::int64_t e = 0; e < c.bucket_sizes[b]; ++e, ++k) mean[k] *= weights[k] = v;
    }
    engine.collectives().mean(mean);
    engine.collectives().mean(weights);
    engine.load_average();
    for (std::size_t e = 0; e < mean.size(); ++e) {
      ASSERT_NEAR(mean[e], expected[e], 1e-12) << "step " << step;
      ASSERT_NEAR(weights[e], 1, 1e-12);
      ASSERT_NEAR(model.x[e], expected[e], 1e-12) << "the consensus average";
    }
    engine.restore_local();
  });
}

TEST(GradientTracking, TrackersAddUpToTheGradients) {
  for (const char* pattern : {"gradient_tracking", "gradient_tracking_atc"}) {
    Case c = sgd_case(pattern);
    c.options.schedule = make_topology("one_peer_exponential", {.shape = even_hosts(3, 2)});
    run_looking(c, noise(), [&](std::int64_t step, Engine& engine, Model<double>& model) {
      if (step == 0) return;
      std::vector<double> gradients = model.g;
      engine.collectives().mean(gradients);
      engine.quiesce();
      std::size_t k = 0;
      for (const StateVector& vector : engine.state()) {
        if (vector.name.find(".tracker.") == std::string::npos) continue;
        std::vector<double> tracker(vector.bytes.size() / sizeof(double));
        std::memcpy(tracker.data(), vector.bytes.data(), vector.bytes.size());
        engine.collectives().mean(tracker);
        for (double value : tracker) ASSERT_NEAR(value, gradients[k++], 1e-12);
      }
      EXPECT_EQ(k, gradients.size());
    });
  }
}

}  // namespace
}  // namespace gossamer
