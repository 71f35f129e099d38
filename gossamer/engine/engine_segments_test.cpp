// What the layer above may bring along or change between steps: places of gradients, parameters
// without one, update counts, memory of the optimizer's state.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "gossamer/base/index.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace engine_segments_test {

constexpr std::int64_t kCount = 96;
constexpr std::int64_t kHalf = 48;

struct Memory {
  std::vector<double> x = std::vector<double>(kCount);
  std::vector<double> g = std::vector<double>(kCount);
  std::vector<double> m = std::vector<double>(kCount);
  std::vector<double> v = std::vector<double>(kCount);
};

EngineOptions ring_of_three(const std::string& pattern) {
  return {.schedule = make_topology("ring", {.shape = even_hosts(3, 1)}),
          .pattern = pattern,
          .optimizer = "adamw",
          .groups = {{.lr = 0.05, .weight_decay = 0.1}}};
}

/// Before each step: may change segments and groups, knowing the worker's memory.
using Prepare = std::function<void(Engine&, Memory&, std::int64_t step)>;

struct Outcome {
  std::vector<double> x, m;
};

/// Three workers train for five steps; returns worker 1's end.
Outcome train(const EngineOptions& options, bool brings_state, const Prepare& prepare) {
  Outcome outcome;
  ClusterSpec cluster;
  cluster.hosts.resize(3);
  run_workers(make_threads_transports(cluster), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    Memory memory;
    std::iota(memory.x.begin(), memory.x.end(), rank - 20.0);  // mean over workers: k − 19
    Bucket bucket{.dtype = DType::f64,
                  .x = memory.x.data(),
                  .g = memory.g.data(),
                  .count = kCount,
                  .segments = {{0, kCount, 0}}};
    if (brings_state) bucket.optimizer_state = {memory.m.data(), memory.v.data()};
    Engine engine(options, transport, {bucket});
    engine.start_at(0);  // each with values of its own
    for (std::int64_t step = 0; step < 5; ++step) {
      for (std::size_t k = 0; k < kCount; ++k) {
        memory.g[k] = std::sin(static_cast<double>(k) + rank + static_cast<double>(step));
      }
      if (prepare) prepare(engine, memory, step);
      engine.step();
    }
    engine.collectives().barrier();
    if (rank == 1) outcome = {memory.x, memory.m};
  });
  return outcome;
}

TEST(EngineSegments, GradientsMayLieAnywhere) {
  for (const char* pattern : {"cwa", "atc", "extra"}) {
    const Outcome flat = train(ring_of_three(pattern), true, nullptr);
    std::array<std::vector<double>, 3> elsewhere;
    const Outcome scattered =
        train(ring_of_three(pattern), true, [&](Engine& engine, Memory& memory, std::int64_t) {
          std::vector<double>& copy = elsewhere[at(engine.collectives().rank())];
          copy.assign(memory.g.begin() + kHalf, memory.g.end());
          std::fill(memory.g.begin() + kHalf, memory.g.end(), 1e300);
          engine.set_segments(0, {{0, kHalf, 0}, {kHalf, kCount - kHalf, 0, copy.data()}});
        });
    EXPECT_EQ(scattered.x, flat.x) << pattern;
    EXPECT_EQ(scattered.m, flat.m) << pattern;
  }
}

TEST(EngineSegments, StateThatIsBroughtAlongIsTheStateThatIsUsed) {
  const Outcome own = train(ring_of_three("cwa"), false, nullptr);
  const Outcome brought = train(ring_of_three("cwa"), true, nullptr);
  EXPECT_EQ(brought.x, own.x);
  EXPECT_NE(brought.m, std::vector<double>(kCount));
}

TEST(EngineSegments, ParameterWithoutGradientIsMixedAndNothingElse) {
  const Prepare second_half_rests = [](Engine& engine, Memory& memory, std::int64_t step) {
    std::fill(memory.g.begin() + kHalf, memory.g.end(), std::nan(""));  // not to be looked at
    if (step == 0) engine.set_segments(0, {{0, kHalf, 0}, {kHalf, kCount - kHalf, kNoStep}});
  };
  const Outcome trained = train(ring_of_three("cwa"), true, nullptr);
  const Outcome rests = train(ring_of_three("cwa"), true, second_half_rests);
  EngineOptions none = ring_of_three("cwa");
  none.optimizer = "none";
  const Outcome mixed = train(none, false, nullptr);
  for (std::size_t k = 0; k < kCount; ++k) {
    const bool first = k < kHalf;
    EXPECT_EQ(rests.x[k], first ? trained.x[k] : mixed.x[k]) << k;
    if (!first) {
      EXPECT_EQ(rests.m[k], 0) << k;
    }
  }
}

TEST(EngineSegments, GroupsCountTheirOwnUpdates) {
  // Adam's first update is lr · sign(g) whatever the step of the run.
  const Prepare late_start = [](Engine& engine, Memory& memory, std::int64_t step) {
    const Hyper hyper{.lr = 0.05, .t = step < 4 ? 0 : 1};
    engine.set_groups({hyper});
    engine.set_segments(0, {{0, kCount, step < 4 ? kNoStep : 0}});
    if (step == 4) {
      std::iota(memory.g.begin(), memory.g.end(), 1.0);
    }
  };
  EngineOptions options = ring_of_three("cwa");
  options.optimizer = "adam";
  const Outcome trained = train(options, true, late_start);
  for (std::size_t k = 0; k < kCount; ++k) {
    EXPECT_NEAR(trained.x[k], static_cast<double>(k) - 19.0 - 0.05, 1e-8) << k;
  }
}

TEST(EngineSegments, GradientScaleOfAGroupMayMaximize) {
  EngineOptions options = ring_of_three("cwa");
  options.optimizer = "sgd";
  options.groups = {{.lr = 0.05}};
  const Outcome down = train(options, false, nullptr);
  options.groups[0].grad_scale = -1;
  const Outcome up = train(options, false, nullptr);
  for (std::size_t k = 0; k < kCount; ++k) {
    EXPECT_NEAR(up.x[k] + down.x[k], 2 * (static_cast<double>(k) - 19.0), 1e-12);
  }
}

}  // namespace engine_segments_test
}  // namespace gossamer
