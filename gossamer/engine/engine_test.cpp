#include "gossamer/engine/engine.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "gossamer/base/index.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/parts.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

using namespace engine_case;  // NOLINT: all of it is about this test

Round random_doubly_stochastic(int workers, Rng& rng) {
  std::vector<std::vector<Entry>> rows(static_cast<std::size_t>(workers));
  for (double weight : {0.5, 0.3, 0.2}) {
    std::vector<int> target(static_cast<std::size_t>(workers));
    std::iota(target.begin(), target.end(), 0);
    for (std::size_t k = target.size(); k > 1; --k) std::swap(target[k - 1], target[rng.below(k)]);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back({target[i], weight});
  }
  return sparse_round(workers, std::move(rows));
}

/// A topology of the table that serves this size and has doubly stochastic W, or a schedule of
/// random matrices.
Schedule random_schedule(const HostShape& shape, Rng& rng) {
  const auto pick = rng.below(topologies().size() + 1);
  const bool is_topology = pick < topologies().size();
  if (is_topology && topologies()[pick].stochasticity == Stochasticity::doubly) {
    try {
      return topologies()[pick].make({.shape = shape, .seed = rng.next()});
    } catch (const std::invalid_argument&) {  // not every topology serves every size
    }
  }
  for (;;) {
    std::vector<Round> rounds;
    for (std::uint64_t k = 0; k < 1 + rng.below(3); ++k) {
      rounds.push_back(random_doubly_stochastic(shape.workers(), rng));
    }
    Schedule schedule = periodic_schedule("random matrices", shape, rounds);
    if (parts_of(schedule).size() == 1) return schedule;
  }
}

template <class Table>
std::string pick_name(const Table& table, Rng& rng) {
  return std::string(table[rng.below(table.size())].name);
}

Hyper random_hyper(Rng& rng) {
  const bool nesterov = rng.below(2) == 1;
  return {.lr = 0.01 + 0.05 * rng.uniform(),
          .weight_decay = rng.below(2) ? 0.1 * rng.uniform() : 0,
          .beta1 = 0.8 + 0.15 * rng.uniform(),
          .beta2 = 0.9 + 0.09 * rng.uniform(),
          .eps = 1e-6,
          .momentum = 0.8,
          .dampening = nesterov ? 0 : 0.1,
          .nesterov = nesterov,
          .accumulate = 1 + static_cast<int>(rng.below(4))};
}

/// A topology whose W is symmetric and the same in every step, with eigenvalues above 0.
Schedule static_schedule(const HostShape& shape, Rng& rng) {
  constexpr const char* kNames[] = {"ring", "grid", "torus", "star", "complete"};
  return lazy(make_topology(kNames[rng.below(std::size(kNames))], {.shape = shape}));
}

/// Some rounds of random columns that sum to 1, or the directed topology, perhaps modified.
Schedule directed_schedule(const HostShape& shape, Rng& rng) {
  const int degree = 1 + static_cast<int>(rng.below(3));
  Schedule schedule =
      make_topology("random_directed", {.shape = shape, .seed = rng.next(), .degree = degree});
  if (rng.below(2)) {
    std::vector<Round> rounds;
    for (int t = 0; t < 1 + degree; ++t) rounds.push_back(round_at(schedule, t));
    schedule = periodic_schedule("random columns", shape, rounds, Stochasticity::column);
  }
  if (rng.below(3) == 0) schedule = with_local_steps(schedule, 2);
  if (rng.below(3) == 0) schedule = with_global_average(schedule, 3);
  return rng.below(3) == 0 ? with_rounds_per_step(schedule, 2) : schedule;
}

/// What the pattern needs of schedule and outer steps.
void suit(Case& c, const Pattern& pattern, Rng& rng) {
  Schedule& schedule = c.options.schedule;
  if (pattern.is_static) schedule = static_schedule(c.shape(), rng);
  if (pattern.weighs && rng.below(4) != 0) schedule = directed_schedule(c.shape(), rng);
  const int every = 1 + static_cast<int>(rng.below(4));
  if (pattern.outer == Outer::any_round && rng.below(2))
    schedule = with_local_steps(schedule, every);
  if (pattern.outer == Outer::global_average) schedule = with_global_average(schedule, every);
  for (Hyper& hyper : c.options.groups) {
    hyper.outer_every = every;
    hyper.outer_momentum = 0.9 * rng.uniform();
    hyper.outer_lr = 0.5 + rng.uniform();
    hyper.noise_share = 1 - 0.9 * rng.uniform();
    hyper.consensus = 1 - 0.9 * rng.uniform();
  }
}

Case random_case(std::uint64_t seed) {
  Rng rng(seed);
  HostShape shape;
  for (std::uint64_t h = 0; h < 1 + rng.below(4); ++h) {
    shape.workers_per_host.push_back(1 + static_cast<int>(rng.below(3)));
  }
  Case c;
  c.options.schedule = random_schedule(shape, rng);
  const Pattern& pattern = patterns()[rng.below(patterns().size())];
  c.options.pattern = pattern.name;
  c.options.optimizer = pattern.optimizers.empty()
                            ? pick_name(optimizers(), rng)
                            : pattern.optimizers[rng.below(pattern.optimizers.size())];
  c.options.groups = {random_hyper(rng), random_hyper(rng)};
  c.options.groups[1].accumulate = c.options.groups[0].accumulate;
  suit(c, pattern, rng);
  c.options.update = rng.below(2) ? UpdateAt::step : UpdateAt::backward;
  c.options.group_method = static_cast<GroupMethod>(rng.below(3));
  c.options.stagger = rng.below(2) == 1;
  c.spares = rng.below(2) == 1;
  c.over_net = rng.below(3) == 0;
  if (rng.below(2)) c.average_at = static_cast<std::int64_t>(rng.below(7));
  c.options.measure_distance = rng.below(2) == 1;
  const bool may_clip = c.options.update == UpdateAt::step || c.options.pattern == "allreduce";
  if (may_clip && rng.below(2)) c.options.clip_norm = 2.0;
  for (std::uint64_t b = 0; b < 1 + rng.below(5); ++b) {
    c.bucket_sizes.push_back(1 + static_cast<std::int64_t>(rng.below(90)));
    for (std::int64_t k = 0; k < c.bucket_sizes.back(); ++k) {
      c.group_of.push_back(rng.below(8) == 0 ? 1 : 0);
    }
  }
  return c;
}

std::string describe(const Case& c, std::uint64_t seed) {
  return "seed " + std::to_string(seed) + ": " + c.options.schedule.name + " " + c.options.pattern +
         " " + c.options.optimizer + ", " + std::to_string(c.shape().workers()) + " workers" +
         (c.over_net ? " over net" : "");
}

constexpr std::uint64_t kCases = 200;

TEST(Engine, EqualsTheDenseOracleInDoubleForRandomCases) {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const Case c = random_case(seed);
    SCOPED_TRACE(describe(c, seed));
    const Gradient gradient = quadratics(seed);
    EXPECT_LT(largest_difference(engine_run<double>(c, gradient), oracle_run(c, gradient)), 1e-12);
  }
}

TEST(Engine, EqualsTheDenseOracleInFloatToRounding) {
  for (std::uint64_t seed = 1000; seed < 1000 + kCases / 2; ++seed) {
    const Case c = random_case(seed);
    SCOPED_TRACE(describe(c, seed));
    const Gradient gradient = quadratics(seed);
    EXPECT_LT(largest_difference(engine_run<float>(c, gradient), oracle_run(c, gradient)), 1e-4);
  }
}

/// What is not said in one packet, but lies in shared memory or is cut into frames.
TEST(Engine, EqualsTheDenseOracleOverNetWithLargeBuckets) {
  for (std::uint64_t seed = 2000; seed < 2016; ++seed) {
    Case c = random_case(seed);
    c.over_net = true;
    if (seed % 2 == 0) c.net = {.address = "127.0.0.1", .share_memory = false};
    c.steps = 3;
    Rng rng(seed);
    c.group_of.clear();
    for (std::int64_t& size : c.bucket_sizes) {
      size += 3000 + static_cast<std::int64_t>(rng.below(4000));
      for (std::int64_t k = 0; k < size; ++k) c.group_of.push_back(rng.below(2000) == 0 ? 1 : 0);
    }
    SCOPED_TRACE(describe(c, seed));
    const Gradient gradient = quadratics(seed);
    // Of thousands of gradients some are so small that Adam's g/|g| shows their rounding.
    const double near = c.options.optimizer.find("adam") == std::string::npos ? 1e-12 : 1e-11;
    EXPECT_LT(largest_difference(engine_run<double>(c, gradient), oracle_run(c, gradient)), near);
  }
}

Case plain_case(const std::string& topology, const HostShape& shape) {
  Case c;
  c.options.schedule = make_topology(topology, {.shape = shape});
  c.options.optimizer = "sgd";
  c.options.groups = {{.lr = 0.05}};
  c.bucket_sizes = {48, 48, 48, 20};
  c.group_of.assign(164, 0);
  return c;
}

TEST(Engine, CompleteGraphWithAtcIsAllReduceForSgd) {
  Case atc = plain_case("complete", even_hosts(3, 2));
  atc.options.pattern = "atc";
  Case allreduce = atc;
  allreduce.options.pattern = "allreduce";
  const Gradient gradient = quadratics(5);
  EXPECT_LT(largest_difference(engine_run<double>(atc, gradient),
                               engine_run<double>(allreduce, gradient)),
            1e-14);
}

TEST(Engine, CompleteGraphWithAtcIsNotAllReduceForAdam) {
  Case atc = plain_case("complete", even_hosts(3, 2));
  atc.options.pattern = "atc";
  atc.options.optimizer = "adam";
  Case allreduce = atc;
  allreduce.options.pattern = "allreduce";
  const Gradient gradient = quadratics(5);
  EXPECT_GT(largest_difference(engine_run<double>(atc, gradient),
                               engine_run<double>(allreduce, gradient)),
            1e-3);
}

TEST(Engine, CuttingIntoBucketsChangesNoBit) {
  Case one_bucket = plain_case("aer", even_hosts(4, 2));
  one_bucket.bucket_sizes = {164};
  one_bucket.options.stagger = false;
  Case in_step = one_bucket;
  in_step.bucket_sizes = {48, 48, 48, 20};
  const Gradient gradient = quadratics(8);
  EXPECT_EQ(largest_difference(engine_run<double>(one_bucket, gradient),
                               engine_run<double>(in_step, gradient)),
            0);
}

TEST(Engine, ReadingPeersInPlaceChangesNoBit) {
  for (const char* topology : {"ring", "one_peer_exponential", "aer", "complete"}) {
    for (const UpdateAt update : {UpdateAt::step, UpdateAt::backward}) {
      Case copied = plain_case(topology, even_hosts(4, 2));
      copied.options.update = update;
      copied.options.optimizer = "adamw";
      copied.options.measure_distance = true;
      Case in_place = copied;
      in_place.spares = true;
      const Gradient gradient = quadratics(9);
      EXPECT_EQ(largest_difference(engine_run<float>(in_place, gradient),
                                   engine_run<float>(copied, gradient)),
                0)
          << topology;
    }
  }
}

TEST(Engine, HierarchyChangesNothingButRounding) {
  Case hierarchical = plain_case("aer", even_hosts(4, 3));
  Case direct = hierarchical;
  direct.options.group_method = GroupMethod::direct;
  const Gradient gradient = quadratics(8);
  EXPECT_LT(largest_difference(engine_run<double>(hierarchical, gradient),
                               engine_run<double>(direct, gradient)),
            1e-13);
}

TEST(Engine, TwoRunsAndAnyNumberOfKernelThreadsGiveTheSameBits) {
  Case c = plain_case("aer", even_hosts(2, 2));
  c.options.optimizer = "accum_adamw";
  c.bucket_sizes = {200'000, 70'000};
  c.group_of.assign(270'000, 0);
  c.options.measure_distance = true;
  c.options.clip_norm = 1;
  c.steps = 3;
  const Gradient gradient = [](int worker, std::int64_t step, const std::vector<double>& x) {
    std::vector<double> g(x.size());
    for (std::size_t k = 0; k < x.size(); ++k) {
      g[k] = x[k] * 0.1 + static_cast<double>((k + static_cast<std::size_t>(step)) % 7) - worker;
    }
    return g;
  };
  const Matrix first = engine_run<float>(c, gradient);
  EXPECT_EQ(largest_difference(engine_run<float>(c, gradient), first), 0);
  c.options.kernel_threads = 2;
  EXPECT_EQ(largest_difference(engine_run<float>(c, gradient), first), 0);
}

TEST(Engine, WorkerMeanMovesByMinusLrTimesTheMeanGradientForEveryTopology) {
  for (const Topology& topology : topologies()) {
    SCOPED_TRACE(topology.name);
    if (topology.stochasticity != Stochasticity::doubly) continue;
    Case c = plain_case(std::string(topology.name), even_hosts(4, 2));
    c.steps = 4;
    const Gradient noise = [](int worker, std::int64_t step, const std::vector<double>& x) {
      std::vector<double> g(x.size());
      for (std::size_t k = 0; k < x.size(); ++k) {
        g[k] = Rng(k, static_cast<std::uint64_t>(10 * worker + step)).normal();
      }
      return g;
    };
    const Matrix end = engine_run<double>(c, noise);
    const std::vector<double> start = first_model<double>(c)->x;
    for (std::size_t k = 0; k < start.size(); ++k) {
      double mean = 0;
      double expected = start[k];
      for (int i = 0; i < 8; ++i) {
        mean += end[at(i)][k] / 8;
        for (std::int64_t step = 0; step < c.steps; ++step) {
          expected -= 0.05 * noise(i, step, start)[k] / 8;
        }
      }
      ASSERT_NEAR(mean, expected, 1e-12);
    }
  }
}

}  // namespace
}  // namespace gossamer
