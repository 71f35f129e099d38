// Replicas that average gradients over those that are left: see Note [Settled means].
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace settled_means_test {

constexpr int kElements = 40;
constexpr int kSteps = 12;
constexpr double kRate = 0.1;
/// Of the two buckets.
constexpr std::array<std::int64_t, 2> kCounts = {24, 16};

struct Death {
  int worker = 0;
  int step = 0;     ///< that it does not end
  int buckets = 0;  ///< of which it sends the gradients before
};

struct Case {
  std::vector<int> per_host = {1, 1, 1, 1};
  Codec codec = Codec::fp32;
  double clip_norm = 0;
  std::vector<Death> deaths = {};
};

double gradient_of(int rank, int step, int element) {
  return std::sin(3. * rank + 0.7 * step + element);
}

bool is_there(const Case& given, int rank, int step) {
  for (const Death& death : given.deaths) {
    if (death.worker == rank && step >= death.step) return false;
  }
  return true;
}

/// Plain steps with the mean over those that are there.
std::vector<double> expected(const Case& given) {
  const int workers = HostShape{given.per_host}.workers();
  std::vector<double> x(kElements, 1.);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> mean(kElements);
    int there = 0;
    for (int rank = 0; rank < workers; ++rank) {
      if (!is_there(given, rank, step)) continue;
      ++there;
      for (int i = 0; i < kElements; ++i) mean[at(i)] += gradient_of(rank, step, i);
    }
    double squared = 0;
    for (double& value : mean) {
      value /= there;
      squared += value * value;
    }
    const double norm = std::sqrt(squared);
    const bool clips = given.clip_norm > 0 && norm > given.clip_norm;
    const double scale = clips ? given.clip_norm / norm : 1;
    for (int i = 0; i < kElements; ++i) x[at(i)] -= kRate * scale * mean[at(i)];
  }
  return x;
}

/// By rank, of those that do all steps; whom they have said to be lost.
struct Found {
  std::vector<std::vector<double>> x;
  std::vector<std::vector<int>> lost;
};

Found found(const Case& given) {
  const HostShape shape{given.per_host};
  Found all;
  all.x.resize(at(shape.workers()));
  all.lost.resize(at(shape.workers()));
  run_workers(make_threads_transports(engine_case::free_links(shape)), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    std::vector<double> x(kElements, 1.);
    std::vector<double> g(kElements);
    Engine engine({.schedule = make_topology("ring", {.shape = shape}),
                   .pattern = "allreduce",
                   .optimizer = "sgd",
                   .groups = {{.lr = kRate}},
                   .update = UpdateAt::backward,
                   .codec = given.codec,
                   .lost = Lost::go_on,
                   .clip_norm = given.clip_norm},
                  transport,
                  {{DType::f64, x.data(), g.data(), kCounts[0], {{0, kCounts[0], 0}}},
                   {DType::f64,
                    x.data() + kCounts[0],
                    g.data() + kCounts[0],
                    kCounts[1],
                    {{0, kCounts[1], 0}}}});
    engine.start_at(0);
    for (int step = 0; step < kSteps; ++step) {
      for (int i = 0; i < kElements; ++i) g[at(i)] = gradient_of(rank, step, i);
      for (const Death& death : given.deaths) {
        if (death.worker != rank || death.step != step) continue;
        for (int sent = 0; sent < death.buckets; ++sent) engine.gradient_ready(1 - sent);
        return;
      }
      engine.gradient_ready(1);
      engine.gradient_ready(0);
      for (const LostPeer& each : engine.step().lost) all.lost[at(rank)].push_back(each.peer);
    }
    all.x[at(rank)] = x;
  });
  return all;
}

void expect_replicas(const Case& given) {
  const Found all = found(given);
  const std::vector<double> right = expected(given);
  const double slack = given.codec == Codec::fp32 ? 1e-12 : 0.1;
  const std::vector<double>* first = nullptr;
  for (int rank = 0; rank < std::ssize(all.x); ++rank) {
    const std::vector<double>& x = all.x[at(rank)];
    ASSERT_EQ(x.empty(), !is_there(given, rank, kSteps - 1)) << "worker " << rank;
    if (x.empty()) continue;
    if (first == nullptr) first = &x;
    EXPECT_EQ(x, *first) << "worker " << rank;
    for (int i = 0; i < kElements; ++i) ASSERT_NEAR(x[at(i)], right[at(i)], slack);
  }
}

TEST(SettledMeans, NobodyIsLost) { expect_replicas({}); }

TEST(SettledMeans, OneIsLostBetweenTwoSteps) { expect_replicas({.deaths = {{2, 5}}}); }

TEST(SettledMeans, OneIsLostWithinAStepAndSomeMayHaveItsSums) {
  expect_replicas({.deaths = {{0, 5, 1}}});
  expect_replicas({.deaths = {{0, 5, 2}}});
}

TEST(SettledMeans, OneAfterTheOtherUntilOneIsLeft) {
  expect_replicas({.deaths = {{1, 2, 1}, {0, 6}, {3, 9, 2}}});
}

TEST(SettledMeans, SeveralAtATime) {
  expect_replicas({.per_host = {2, 2, 2}, .deaths = {{1, 4, 1}, {2, 4}, {5, 4, 2}}});
}

TEST(SettledMeans, TheFirstOfAHost) {
  expect_replicas({.per_host = {2, 1, 3}, .deaths = {{3, 4, 1}, {0, 7}}});
}

TEST(SettledMeans, ClippingSeesTheNewMean) {
  expect_replicas({.clip_norm = 0.5, .deaths = {{1, 3, 1}, {2, 7}}});
}

TEST(SettledMeans, CodesOfThoseThatAreLeft) {
  expect_replicas({.per_host = {2, 2}, .codec = Codec::int8, .deaths = {{1, 3, 1}}});
}

TEST(SettledMeans, AllThatAreLeftNameTheLost) {
  const Found all = found({.deaths = {{2, 5, 1}}});
  for (const int rank : {0, 1, 3}) EXPECT_EQ(all.lost[at(rank)], std::vector{2});
}

TEST(SettledMeans, AnyDeathsAnywhere) {
  Rng rng(5);
  const std::vector<std::vector<int>> shapes{{1, 1, 1}, {2, 2}, {3}, {1, 2, 2}, {1, 1, 1, 1, 1}};
  for (int trial = 0; trial < 25; ++trial) {
    Case given{.per_host = shapes[at(trial) % shapes.size()]};
    const int workers = HostShape{given.per_host}.workers();
    for (int rank = 0; rank < workers; ++rank) {
      if (rank == trial % workers || rng.below(2) == 0) continue;
      given.deaths.push_back(
          {rank, static_cast<int>(rng.below(kSteps)), static_cast<int>(rng.below(3))});
    }
    SCOPED_TRACE("trial " + std::to_string(trial));
    expect_replicas(given);
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace settled_means_test
}  // namespace gossamer
