// Buckets that mix in every k-th step beside one that mixes in all.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace resting_buckets_test {

constexpr int kWorkers = 4;
constexpr std::int64_t kSteps = 11;
constexpr std::size_t kCount = 64;
constexpr double kLr = 0.1;
constexpr std::array<std::int64_t, 3> kEvery = {1, 3, 2};

using Values = std::vector<double>;
/// By bucket.
using Worker = std::array<Values, kEvery.size()>;
using All = std::array<Worker, kWorkers>;

double gradient(int rank, std::int64_t step, std::size_t bucket, std::size_t k) {
  return std::sin(static_cast<double>(k + 7 * bucket) + rank + 3.0 * static_cast<double>(step));
}

Worker start(int rank) {
  Worker worker;
  for (Values& values : worker) values.assign(kCount, rank);
  return worker;
}

/// cwa: W x − lr g; atc: W (x − lr g); without a mix x − lr g. Bucket b is in its n-th round, plus
/// b where buckets are staggered.
All reference(const EngineOptions& options, std::int64_t steps) {
  All x;
  for (int i = 0; i < kWorkers; ++i) x[at(i)] = start(i);
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::size_t b = 0; b < kEvery.size(); ++b) {
      const std::int64_t n = (step + 1) / kEvery[b] - 1;
      const bool rests = (step + 1) % kEvery[b] != 0;
      const auto shift = options.stagger ? static_cast<std::int64_t>(b) : 0;
      const Round round = rests ? identity_round(kWorkers) : round_at(options.schedule, n + shift);
      All stepped = x;
      for (int i = 0; i < kWorkers; ++i) {
        for (std::size_t k = 0; k < kCount; ++k) {
          stepped[at(i)][b][k] -= kLr * gradient(i, step, b, k);
        }
      }
      const All sent = options.pattern == "atc" ? stepped : x;
      for (int i = 0; i < kWorkers; ++i) {
        for (std::size_t k = 0; k < kCount; ++k) {
          double mixed = stepped[at(i)][b][k] - sent[at(i)][b][k];
          for (const Entry& entry : row_of(round, i)) {
            mixed += entry.weight * sent[at(entry.worker)][b][k];
          }
          x[at(i)][b][k] = mixed;
        }
      }
    }
  }
  return x;
}

/// From a start after `first` steps, in which the workers have what they had then.
All train(const EngineOptions& options, std::int64_t first, const All& from) {
  All found = from;
  run_workers(make_threads_transports(engine_case::free_links(options.schedule.shape)),
              [&](Transport& transport) {
                const int rank = transport.describe().rank;
                Worker& x = found[at(rank)];
                Worker g = start(0);
                std::vector<Bucket> buckets;
                for (std::size_t b = 0; b < kEvery.size(); ++b) {
                  buckets.push_back({.dtype = DType::f64,
                                     .x = {x[b].data()},
                                     .g = {g[b].data()},
                                     .count = kCount,
                                     .segments = {{.count = kCount}},
                                     .every = kEvery[b],
                                     .is_beside = b > 0});
                }
                Engine engine(options, transport, buckets);
                engine.start_at(first);
                for (std::int64_t step = first; step < kSteps; ++step) {
                  for (std::size_t b = 0; b < kEvery.size(); ++b) {
                    for (std::size_t k = 0; k < kCount; ++k) g[b][k] = gradient(rank, step, b, k);
                  }
                  engine.step();
                }
                engine.quiesce();
                engine.collectives().barrier();
              });
  return found;
}

void expect_near(const All& found, const All& expected, const std::string& what) {
  for (std::size_t i = 0; i < kWorkers; ++i) {
    for (std::size_t b = 0; b < kEvery.size(); ++b) {
      for (std::size_t k = 0; k < kCount; ++k) {
        ASSERT_NEAR(found[i][b][k], expected[i][b][k], 1e-12)
            << what << ", worker " << i << ", bucket " << b << ", element " << k;
      }
    }
  }
}

EngineOptions options_for(const std::string& topology, const std::string& pattern, bool staggers,
                          const HostShape& shape = {{1, 1, 1, 1}}) {
  return {.schedule = make_topology(topology, {.shape = shape}),
          .pattern = pattern,
          .optimizer = "sgd",
          .groups = {{.lr = kLr}},
          .stagger = staggers,
          .timeout_s = 20};
}

TEST(RestingBuckets, FollowTheScheduleAtTheirOwnPeriod) {
  for (const std::string topology : {"ring", "one_peer_exponential", "one_peer_ring"}) {
    for (const std::string pattern : {"cwa", "atc"}) {
      for (const bool staggers : {false, true}) {
        for (const HostShape& shape : {HostShape{{1, 1, 1, 1}}, HostShape{{2, 2}}}) {
          const EngineOptions options = options_for(topology, pattern, staggers, shape);
          const All expected = reference(options, kSteps);
          expect_near(train(options, 0, reference(options, 0)), expected, topology + pattern);
        }
      }
    }
  }
}

TEST(RestingBuckets, GoOnWhereAnotherRunHasEnded) {
  for (const std::string pattern : {"cwa", "atc"}) {
    const EngineOptions options = options_for("one_peer_exponential", pattern, true);
    for (std::int64_t first = 1; first < 7; ++first) {
      expect_near(train(options, first, reference(options, first)), reference(options, kSteps),
                  pattern + " from step " + std::to_string(first));
    }
  }
}

TEST(RestingBuckets, WhatIsBesideTheParametersIsAveragedAndDoesNotCount) {
  const EngineOptions options = options_for("ring", "atc", false);
  run_workers(make_threads_transports({.hosts = {{.workers = kWorkers}}}),
              [&](Transport& transport) {
                const int rank = transport.describe().rank;
                Values parameters(kCount, 2.0 + 0.5 * (rank - 1.5)), beside(kCount, 100.0 * rank);
                EngineOptions mine = options;
                mine.schedule = make_topology("ring", {.shape = even_hosts(1, kWorkers)});
                Engine engine(mine, transport,
                              {{.dtype = DType::f64,
                                .x = {parameters.data()},
                                .g = {parameters.data()},
                                .count = kCount,
                                .segments = {{.count = kCount}}},
                               {.dtype = DType::f64,
                                .x = {beside.data()},
                                .g = {beside.data()},
                                .count = kCount,
                                .segments = {{.count = kCount}},
                                .is_beside = true}});
                engine.start_at(0);
                // √(mean of (0.5 · (−1.5 … 1.5))²) / 2
                EXPECT_NEAR(engine.load_average(), 0.5 * std::sqrt(1.25) / 2, 1e-12);
                EXPECT_NEAR(beside.front(), 150, 1e-9);
                EXPECT_NEAR(parameters.front(), 2, 1e-12);
                engine.restore_local();
                EXPECT_EQ(beside.front(), 100.0 * rank);
                engine.collectives().barrier();
              });
}

}  // namespace resting_buckets_test
}  // namespace gossamer
