// Workers that go on without those that are lost.
#include "gossamer/engine/lost_peers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/test_errors.h"
#include "gossamer/engine/census_steps.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace lost_peers_test {

constexpr int kElements = 40;
constexpr int kSteps = 2 * kStepsOfACensus - 1;  // edges are off: no census has counted yet

struct Fleet {
  std::string topology = "ring";
  std::vector<int> per_host = {1, 1, 1, 1, 1};
  std::string pattern = "cwa";
  std::string optimizer = "none";
  Codec codec = Codec::fp32;
  Late late = Late::wait;
  GroupMethod group_method = GroupMethod::hierarchical;
  std::vector<std::pair<int, int>> deaths = {};  ///< worker, after how many steps
};

/// What the survivors found.
struct Outcome {
  std::vector<std::vector<std::vector<double>>> x;  ///< by step and rank; empty for the lost
  std::vector<std::vector<int>> lost;               ///< by rank, whom it has reported
  std::vector<int> live;                            ///< ranks
};

double start_of(int rank, int element) { return std::sin(7. * rank + element); }

EngineOptions options_of(const Fleet& fleet) {
  const HostShape shape{fleet.per_host};
  return {.schedule = make_topology(fleet.topology, {.shape = shape}),
          .pattern = fleet.pattern,
          .optimizer = fleet.optimizer,
          .groups = {{.lr = 0, .outer_every = 2}},
          .group_method = fleet.group_method,
          .codec = fleet.codec,
          .late = fleet.late,
          .lost = Lost::go_on};
}

Outcome outcome_of(const Fleet& fleet) {
  const int workers = HostShape{fleet.per_host}.workers();
  const auto survivors = workers - static_cast<int>(fleet.deaths.size());
  std::atomic<int> done = 0;
  Outcome outcome;
  outcome.x.assign(kSteps, std::vector<std::vector<double>>(static_cast<std::size_t>(workers)));
  outcome.lost.resize(static_cast<std::size_t>(workers));
  run_workers(make_threads_transports(engine_case::free_links(HostShape{fleet.per_host})),
              [&](Transport& transport) {
                const auto rank = static_cast<std::size_t>(transport.describe().rank);
                const auto death = std::ranges::find(fleet.deaths, static_cast<int>(rank),
                                                     &std::pair<int, int>::first);
                std::vector<double> x(kElements);
                std::vector<double> g(kElements, 0.);
                for (int i = 0; i < kElements; ++i)
                  x[static_cast<std::size_t>(i)] = start_of(transport.describe().rank, i);
                Engine engine(options_of(fleet), transport,
                              {{DType::f64, x.data(), g.data(), 24, {{0, 24, 0}}},
                               {DType::f64, x.data() + 24, g.data() + 24, 16, {{0, 16, 0}}}});
                engine.set_anchors();
                engine.start_at(0);
                for (int step = 0; step < kSteps; ++step) {
                  if (death != fleet.deaths.end() && step == death->second) return;
                  for (const LostPeer& each : engine.step().lost)
                    outcome.lost[rank].push_back(each.peer);
                  engine.quiesce();
                  if (death == fleet.deaths.end())
                    outcome.x[static_cast<std::size_t>(step)][rank] = x;
                  if (fleet.late == Late::skip)
                    std::this_thread::sleep_for(std::chrono::milliseconds(2));
                }
                ++done;
                while (done < survivors) std::this_thread::sleep_for(std::chrono::milliseconds(1));
              });
  for (int rank = 0; rank < workers; ++rank) {
    if (!outcome.x.back()[static_cast<std::size_t>(rank)].empty()) outcome.live.push_back(rank);
  }
  return outcome;
}

double mean_at(const Outcome& outcome, int step, int element) {
  double sum = 0;
  for (const int rank : outcome.live) {
    sum += outcome.x[static_cast<std::size_t>(step)][static_cast<std::size_t>(rank)]
                    [static_cast<std::size_t>(element)];
  }
  return sum / static_cast<double>(outcome.live.size());
}

/// All rows of W sum to 1 and nothing is negative; once all have noticed, columns sum to 1 as well.
void expect_right_mixes(const Fleet& fleet, const Outcome& outcome, int settled) {
  const int workers = HostShape{fleet.per_host}.workers();
  ASSERT_EQ(std::ssize(outcome.live), workers - std::ssize(fleet.deaths));
  for (int i = 0; i < kElements; ++i) {
    double low = 1;
    double high = -1;
    for (int rank = 0; rank < workers; ++rank) {
      low = std::min(low, start_of(rank, i));
      high = std::max(high, start_of(rank, i));
    }
    const double slack = fleet.codec == Codec::fp32 ? 1e-12 : 0.1;
    for (int step = 0; step < kSteps; ++step) {
      for (const int rank : outcome.live) {
        const double value = outcome.x[static_cast<std::size_t>(step)]
                                      [static_cast<std::size_t>(rank)][static_cast<std::size_t>(i)];
        ASSERT_GE(value, low - slack);
        ASSERT_LE(value, high + slack);
      }
    }
    ASSERT_NEAR(mean_at(outcome, kSteps - 1, i), mean_at(outcome, settled, i), 1e-12)
        << "element " << i;
  }
}

double spread_of(const Outcome& outcome, int step, const std::vector<int>& among) {
  double spread = 0;
  for (int i = 0; i < kElements; ++i) {
    double low = 1e9;
    double high = -1e9;
    for (const int rank : among) {
      const double value = outcome.x[static_cast<std::size_t>(step)][static_cast<std::size_t>(rank)]
                                    [static_cast<std::size_t>(i)];
      low = std::min(low, value);
      high = std::max(high, value);
    }
    spread = std::max(spread, high - low);
  }
  return spread;
}

TEST(LostPeers, RingGoesOnAsAPath) {
  const Fleet fleet{.deaths = {{2, 5}}};
  const Outcome outcome = outcome_of(fleet);
  expect_right_mixes(fleet, outcome, 8);
  EXPECT_LT(spread_of(outcome, kSteps - 1, outcome.live),
            .02 * spread_of(outcome, 0, outcome.live));
  EXPECT_EQ(outcome.lost[1], std::vector{2});
  EXPECT_EQ(outcome.lost[3], std::vector{2});
  EXPECT_TRUE(outcome.lost[0].empty());
}

TEST(LostPeers, GroupsOfALostWorkerKeepTheirOwnAndNobodyWaits) {
  const Fleet fleet{
      .topology = "alternating_exponential_ring", .per_host = {2, 2, 2, 2}, .deaths = {{4, 5}}};
  const Outcome outcome = outcome_of(fleet);
  expect_right_mixes(fleet, outcome, 10);
  const std::vector<int> others{0, 1, 2, 3, 6, 7};
  EXPECT_LT(spread_of(outcome, kSteps - 1, others), .02 * spread_of(outcome, 0, others));
  const auto& last = outcome.x.back()[5];  // all its rounds were with worker 4's host
  EXPECT_EQ(last, outcome.x[10][5]);
}

TEST(LostPeers, WorkersThatWaitForNobodyGoOnWithoutTheLost) {
  const Fleet fleet{.late = Late::skip, .deaths = {{0, 5}}};
  const Outcome outcome = outcome_of(fleet);
  ASSERT_EQ(outcome.live, (std::vector{1, 2, 3, 4}));
  EXPECT_LT(spread_of(outcome, kSteps - 1, outcome.live),
            .05 * spread_of(outcome, 0, outcome.live));
  EXPECT_EQ(outcome.lost[1], std::vector{0});
  EXPECT_EQ(outcome.lost[4], std::vector{0});
}

TEST(LostPeers, WhoIsExpelledEndsUnlessItHasGivenThatOneUp) {
  auto transports = make_threads_transports({.hosts = {{}, {}, {}}});
  LostPeers lost(*transports[0], {1, 2});
  const auto failed_receive = [&](int peer, int number) {
    double landing = 0;
    const Request request = transports[0]->receive(
        peer, {.step = number}, std::as_writable_bytes(std::span(&landing, 1)), Deadline::max());
    const Status status = transports[0]->poll(request);
    transports[0]->release(request);
    return status.error;
  };
  lost.lose({2, "it has been silent"});
  transports[2]->expel(0);
  lost.pass_over(failed_receive(2, 0), 0);
  EXPECT_EQ(lost.live(), 2);
  transports[1]->expel(0);
  const std::string message = message_of([&] { lost.pass_over(failed_receive(1, 1), 0); });
  EXPECT_NE(message.find("go on without this worker"), std::string::npos) << message;
}

TEST(LostPeers, WhatIsOnlyLateIsStillAnError) {
  auto transports = make_threads_transports({.hosts = {{}, {}}});
  LostPeers lost(*transports[0], {1});
  double landing = 0;
  const Request request =
      transports[0]->receive(1, {}, std::as_writable_bytes(std::span(&landing, 1)), Clock::now());
  const Status status = transports[0]->poll(request);
  EXPECT_THROW(lost.pass_over(status.error, 0), TransportError);
  transports[0]->release(request);
  EXPECT_EQ(lost.live(), 2);
}

TEST(LostPeers, WhatNeedsAllWorkersIsRefused) {
  const auto refusal = [](const Fleet& fleet) {
    EngineOptions options = options_of(fleet);
    return message_of([&] { check_options(options); });
  };
  EXPECT_NE(refusal({.topology = "one_peer_exponential", .late = Late::skip}).find("symmetric W"),
            std::string::npos);
  EXPECT_NO_THROW(check_options(options_of({.topology = "random"})));
}

TEST(LostPeers, DirectedRoundsServeWhereTheyCanBeFormedAnew) {
  EngineOptions options = options_of({.topology = "one_peer_exponential"});
  EXPECT_NO_THROW(check_options(options));
  options.pattern = "gradient_tracking";
  EXPECT_NO_THROW(check_options(options));
  const Schedule& made = options.schedule;
  options.schedule = periodic_schedule("mine", made.shape, {round_at(made, 0)});
  const std::string refusal = message_of([&] { check_options(options); });
  EXPECT_NE(refusal.find("symmetric W"), std::string::npos);
}

class LostPeersEverywhere : public ::testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(LostPeersEverywhere, RowsSumToOneAndTheMeanOfThoseLeftStays) {
  const auto& [topology, which] = GetParam();
  const std::vector<Fleet> fleets{
      {.deaths = {{1, 3}}},
      {.deaths = {{0, 3}, {2, 9}}},
      {.codec = Codec::int8, .deaths = {{2, 4}}},
      {.pattern = "atc", .optimizer = "sgd", .deaths = {{3, 2}}},
      {.pattern = "dmsgd", .optimizer = "momentum", .deaths = {{0, 6}}},
      {.pattern = "gradient_gossip", .optimizer = "sgd", .deaths = {{1, 5}}},
      {.pattern = "noloco", .optimizer = "sgd", .deaths = {{1, 5}}},
      {.group_method = GroupMethod::ring, .deaths = {{1, 5}}},
      {.group_method = GroupMethod::direct, .deaths = {{1, 5}, {4, 5}}},
  };
  Fleet fleet = fleets[static_cast<std::size_t>(which)];
  fleet.topology = topology;
  fleet.per_host = topology == "alternating_exponential_ring" ? std::vector{2, 2, 1, 2, 2}
                                                              : std::vector{2, 1, 2, 1};
  expect_right_mixes(fleet, outcome_of(fleet), 20);
}

INSTANTIATE_TEST_SUITE_P(
    All, LostPeersEverywhere,
    ::testing::Combine(::testing::Values("ring", "one_peer_ring", "grid", "torus", "base_k",
                                         "complete", "random", "alternating_exponential_ring"),
                       ::testing::Range(0, 9)));

}  // namespace lost_peers_test
}  // namespace gossamer
