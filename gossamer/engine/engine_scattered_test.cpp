// Buckets whose parameters lie anywhere and are changed by others between steps.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace engine_scattered_test {

constexpr int kWorkers = 3;
constexpr int kSteps = 6;
constexpr double kLr = 0.1;
constexpr std::size_t kFirst = 2999;           // elements of the first parameter
constexpr std::size_t kSecond = 1500;          // and of the second, after a gap of 3
constexpr std::size_t kLinear = kFirst + 700;  // from here on nothing is clamped
constexpr std::size_t kAll = kFirst + kSecond;

using Values = std::vector<double>;

double gradient(int rank, int step, std::size_t k) {
  return std::sin(static_cast<double>(k) + rank + 3.0 * step);
}

/// What the user does to element k before a step: nothing, or anything.
double changed(double x, int rank, int step, std::size_t k) {
  if (step == 2) return k < kFirst ? 5.0 : x;                       // a head that is reset
  if (step == 3 && k < kLinear) return std::clamp(x, -0.05, 0.05);  // a projection
  if (step == 4) return x + 0.1 * rank;  // by every worker in his own way
  return x;
}

/// x⁺ = x' + Σ_j w_ij (y_j − y_i) − lr g, with x' the changed x and y what was sent.
std::array<Values, kWorkers> reference(const Schedule& schedule) {
  std::array<Values, kWorkers> x;
  for (int i = 0; i < kWorkers; ++i) x[at(i)].assign(kAll, i - 1.0);
  for (int step = 0; step < kSteps; ++step) {
    const auto sent = x;
    const Round round = round_at(schedule, step);
    for (int i = 0; i < kWorkers; ++i) {
      Values& mine = x[at(i)];
      for (std::size_t k = 0; k < kAll; ++k) {
        mine[k] = changed(mine[k], i, step, k) - kLr * gradient(i, step, k);
        for (const Entry& entry : row_of(round, i)) {
          const auto from = static_cast<std::size_t>(entry.worker);
          mine[k] += entry.weight * (sent[from][k] - sent[at(i)][k]);
        }
      }
    }
  }
  return x;
}

/// Both parameters and their gradients, each in memory of its own.
struct Memory {
  Values first, second, g_first, g_second;

  std::vector<Segment> segments() {
    return {{.offset = 0, .count = kFirst, .g = g_first.data(), .x = first.data()},
            {.offset = kFirst, .count = 3, .group = kGap},
            {.offset = kFirst + 3, .count = kSecond, .g = g_second.data(), .x = second.data()}};
  }
};

Values train(const EngineOptions& options, Transport& transport, int rank) {
  Memory memory{Values(kFirst, rank - 1.0), Values(kSecond, rank - 1.0), Values(kFirst),
                Values(kSecond)};
  Engine engine(options, transport,
                {{.dtype = DType::f64, .count = kAll + 3, .segments = memory.segments()}});
  engine.start_at(0);
  for (int step = 0; step < kSteps; ++step) {
    memory.second = Values(memory.second);  // other memory in every step
    for (std::size_t k = 0; k < kAll; ++k) {
      const bool is_first = k < kFirst;
      double& x = is_first ? memory.first[k] : memory.second[k - kFirst];
      x = changed(x, rank, step, k);
      (is_first ? memory.g_first[k] : memory.g_second[k - kFirst]) = gradient(rank, step, k);
    }
    engine.set_segments(0, memory.segments());
    engine.step();
  }
  engine.collectives().barrier();
  Values all = memory.first;
  all.insert(all.end(), memory.second.begin(), memory.second.end());
  return all;
}

/// What each worker ends with.
std::array<Values, kWorkers> train_all(const EngineOptions& options) {
  std::array<Values, kWorkers> found;
  run_workers(make_threads_transports(engine_case::free_links(options.schedule.shape)),
              [&](Transport& transport) {
                const int rank = transport.describe().rank;
                found[at(rank)] = train(options, transport, rank);
              });
  return found;
}

TEST(EngineScattered, WhatChangesBetweenStepsIsKeptAndMovesNobodyElse) {
  for (const std::string topology : {"ring", "complete", "one_peer_ring"}) {
    for (const HostShape& shape : {HostShape{{1, 1, 1}}, HostShape{{3}}, HostShape{{2, 1}}}) {
      const Schedule schedule = make_topology(topology, {.shape = shape});
      const auto expected = reference(schedule);
      const auto found = train_all(
          {.schedule = schedule, .optimizer = "sgd", .groups = {{.lr = kLr}}, .timeout_s = 20});
      for (std::size_t rank = 0; rank < kWorkers; ++rank) {
        for (std::size_t k = 0; k < kAll; ++k) {
          ASSERT_NEAR(found[rank][k], expected[rank][k], 1e-12)
              << topology << ", worker " << rank << ", element " << k;
        }
      }
    }
  }
}

TEST(EngineScattered, CodingKeepsTheMeanWhateverChangesBetweenSteps) {
  for (const Codec codec : kLossyCodecs) {
    for (const std::string topology : {"ring", "complete", "one_peer_ring"}) {
      for (const HostShape& shape : {HostShape{{1, 1, 1}}, HostShape{{2, 1}}}) {
        const Schedule schedule = make_topology(topology, {.shape = shape});
        const auto expected = reference(schedule);
        EngineOptions options{.schedule = schedule, .optimizer = "sgd", .groups = {{.lr = kLr}}};
        options.codec = codec;
        options.timeout_s = 20;
        const auto found = train_all(options);
        double furthest = 0;
        for (std::size_t k = 0; k < kAll; ++k) {
          if (k >= kFirst && k < kLinear) continue;  // the clamp of coded values has another mean
          double apart = 0;
          for (std::size_t rank = 0; rank < kWorkers; ++rank) {
            apart += found[rank][k] - expected[rank][k];
            furthest = std::max(furthest, std::abs(found[rank][k] - expected[rank][k]));
          }
          ASSERT_NEAR(apart, 0, 1e-12) << topology << ", " << name_of(codec) << ", element " << k;
        }
        EXPECT_LT(furthest, 0.1) << topology << ", " << name_of(codec);
        EXPECT_GT(furthest, 0) << "nothing was coded";
      }
    }
  }
}

/// Parameters that are elsewhere: a step that neither mixes nor steps must not look for them.
TEST(EngineScattered, NothingIsTouchedWhereOthersStepAndNobodyMixes) {
  constexpr std::size_t kCount = 1024;
  void* const x =
      ::mmap(nullptr, kCount * sizeof(double), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(x, MAP_FAILED);
  for (const std::string pattern : {"cwa", "atc"}) {
    EngineOptions options{.schedule = alone_schedule(even_hosts(1, 2)), .pattern = pattern};
    options.optimizer = "none";
    run_workers(make_threads_transports({.hosts = {{.workers = 2}}}), [&](Transport& transport) {
      Engine engine(options, transport,
                    {{.dtype = DType::f64,
                      .count = kCount,
                      .segments = {{.count = kCount, .group = kNoStep, .x = x}}}});
      engine.start_at(0);
      for (int step = 0; step < 3; ++step) engine.step();
      EXPECT_EQ(engine.steps_done(), 3);
    });
  }
  ::munmap(x, kCount * sizeof(double));
}

}  // namespace engine_scattered_test
}  // namespace gossamer
