// Rounds that are formed anew among those that are left. See Note [Rounds formed anew].
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"
#include "gossamer/engine/census_steps.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/algebra.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace rounds_anew_test {

constexpr int kElements = 12;

struct Fleet {
  std::string topology = "ring";
  std::vector<int> per_host = {1, 1, 1, 1, 1, 1};
  int steps = 5 * kStepsOfACensus;
  std::string pattern = "cwa";
  std::string optimizer = "none";
  UpdateAt update = UpdateAt::step;
  std::chrono::microseconds jitter{};  ///< of the time that a step takes
  std::map<int, int> deaths = {};      ///< by worker, after how many steps
};

using Values = std::vector<std::vector<double>>;  ///< by rank; empty: it is lost

struct Outcome {
  std::vector<Values> x;               ///< before each step, and after the last
  Values x_at_death;                   ///< by rank
  std::vector<std::vector<int>> lost;  ///< by rank, whom it has reported
  std::vector<std::map<std::int64_t, std::vector<int>>> among;  ///< likewise, by step
};

Outcome outcome_of(const Fleet& fleet) {
  const HostShape shape{fleet.per_host};
  Outcome outcome{
      .x = std::vector<Values>(at(fleet.steps + 1), Values(at(shape.workers()))),
      .x_at_death = Values(at(shape.workers())),
      .lost = std::vector<std::vector<int>>(at(shape.workers())),
      .among = std::vector<std::map<std::int64_t, std::vector<int>>>(at(shape.workers()))};
  std::atomic<std::int64_t> through = 0;
  run_workers(make_threads_transports(engine_case::free_links(shape)), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    const auto death = fleet.deaths.find(rank);
    Rng rng(static_cast<std::uint64_t>(rank) + 1);
    std::vector<double> x(kElements);
    const std::vector<double> g(kElements, 0.);
    for (int i = 0; i < kElements; ++i) x[at(i)] = std::sin(7. * rank + i);
    Engine engine(
        {.schedule = make_topology(fleet.topology, {.shape = shape}),
         .pattern = fleet.pattern,
         .optimizer = fleet.optimizer,
         .groups = {{.lr = 0}},
         .update = fleet.update,
         .lost = Lost::go_on},
        transport,
        {{DType::f64, x.data(), const_cast<double*>(g.data()), kElements, {{0, kElements, 0}}}});
    engine.start_at(0);
    for (int step = 0; step < fleet.steps; ++step) {
      if (death != fleet.deaths.end() && step == death->second) {
        outcome.x_at_death[at(rank)] = x;
        return;
      }
      outcome.x[at(step)][at(rank)] = x;
      if (fleet.jitter.count() > 0) {
        std::this_thread::sleep_for(fleet.jitter * static_cast<double>(rng.below(100)) / 100);
      }
      engine.gradient_ready(0);
      const StepReport report = engine.step();
      for (const LostPeer& each : report.lost) outcome.lost[at(rank)].push_back(each.peer);
      if (!report.among.empty()) outcome.among[at(rank)][report.step] = report.among;
    }
    outcome.x.back()[at(rank)] = x;
    ++through;
    while (through + std::ssize(fleet.deaths) < shape.workers()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  return outcome;
}

/// Those with values, in order.
std::vector<int> there(const Values& values) {
  std::vector<int> ranks;
  for (int rank = 0; rank < std::ssize(values); ++rank) {
    if (!values[at(rank)].empty()) ranks.push_back(rank);
  }
  return ranks;
}

double spread_of(const Values& values) {
  double spread = 0;
  for (int i = 0; i < kElements; ++i) {
    double low = 1e9;
    double high = -1e9;
    for (const int rank : there(values)) {
      low = std::min(low, values[at(rank)][at(i)]);
      high = std::max(high, values[at(rank)][at(i)]);
    }
    spread = std::max(spread, high - low);
  }
  return spread;
}

double mean_of(const Values& values, int element) {
  double sum = 0;
  for (const int rank : there(values)) sum += values[at(rank)][at(element)];
  return sum / static_cast<double>(there(values).size());
}

/// From step `from` on each step is one of this topology's rounds on those that are left.
void expect_rounds_of(const std::string& topology, const HostShape& shape, const Outcome& outcome,
                      int from) {
  const Schedule schedule = make_topology(topology, {.shape = shape});
  const std::vector<int> ranks = there(outcome.x.back());
  ASSERT_EQ(std::ssize(ranks), shape.workers());
  for (int step = from; step + 1 < std::ssize(outcome.x); ++step) {
    const Round round = round_at(schedule, step);
    for (int k = 0; k < shape.workers(); ++k) {
      for (int i = 0; i < kElements; ++i) {
        double mixed = 0;
        for (const Entry& entry : row_of(round, k)) {
          mixed += entry.weight * outcome.x[at(step)][at(ranks[at(entry.worker)])][at(i)];
        }
        ASSERT_NEAR(outcome.x[at(step) + 1][at(ranks[at(k)])][at(i)], mixed, 1e-12)
            << topology << ", worker " << ranks[at(k)] << ", step " << step;
      }
    }
  }
}

constexpr int kEvery = kStepsOfACensus;
constexpr int kAnew = 2 * kEvery + kExchangesAhead;  ///< after a death before step kEvery

TEST(RoundsAnew, ARingIsClosedAgain) {
  const Outcome outcome = outcome_of({.deaths = {{2, 5}, {5, 9}}});
  expect_rounds_of("ring", {{1, 1, 1, 1}}, outcome, kAnew);
  EXPECT_GT(spread_of(outcome.x[at(kAnew)]), .05);  // until then it has two parts
  EXPECT_LT(spread_of(outcome.x.back()), 1e-9);
  for (const int rank : there(outcome.x.back())) {
    EXPECT_EQ(outcome.among[at(rank)],
              (std::map<std::int64_t, std::vector<int>>{{2 * kEvery, {0, 1, 3, 4}}}));
  }
}

TEST(RoundsAnew, AHostAveragesWithoutItsLostWorker) {
  const Outcome outcome = outcome_of(
      {.topology = "alternating_exponential_ring", .per_host = {2, 2, 2, 2}, .deaths = {{4, 5}}});
  expect_rounds_of("alternating_exponential_ring", {{2, 2, 1, 2}}, outcome, kAnew);
  EXPECT_LT(spread_of(outcome.x.back()), 1e-9);
}

TEST(RoundsAnew, DirectedRoundsAreDoublyStochasticAgain) {
  for (const char* topology : {"directed_ring", "exponential", "one_peer_exponential"}) {
    const Outcome outcome = outcome_of({.topology = topology, .deaths = {{2, 5}, {5, 9}}});
    expect_rounds_of(topology, {{1, 1, 1, 1}}, outcome, kAnew);
    EXPECT_LT(spread_of(outcome.x.back()), 1e-6) << topology;
  }
}

TEST(RoundsAnew, WithUpdatesInTheBackward) {
  const Outcome outcome = outcome_of({.update = UpdateAt::backward,
                                      .jitter = std::chrono::milliseconds(1),
                                      .deaths = {{0, kEvery - 1}, {3, kEvery + 1}}});
  // The second one dies in the census that counts it.
  expect_rounds_of("ring", {{1, 1, 1, 1}}, outcome, kAnew + kEvery);
  EXPECT_LT(spread_of(outcome.x.back()), 1e-3);
}

TEST(RoundsAnew, AHostThatIsLostIsNoHostAnyMore) {
  const Outcome outcome = outcome_of({.topology = "one_peer_ring",
                                      .per_host = {1, 2, 1, 1},
                                      .deaths = {{1, kEvery - 12}, {2, kEvery - 2}}});
  expect_rounds_of("one_peer_ring", {{1, 1, 1}}, outcome, kAnew);
}

TEST(RoundsAnew, OneAloneGoesOn) {
  const Outcome outcome = outcome_of({.per_host = {1, 1, 1}, .deaths = {{0, 3}, {2, kEvery + 8}}});
  EXPECT_EQ(there(outcome.x.back()), std::vector{1});
  EXPECT_EQ(outcome.lost[1], (std::vector{0, 2}));
}

TEST(RoundsAnew, AllHearOfALoss) {
  const Outcome outcome = outcome_of({.per_host = std::vector<int>(8, 1), .deaths = {{3, 10}}});
  for (const int rank : there(outcome.x.back())) {
    EXPECT_EQ(outcome.lost[at(rank)], std::vector{3}) << rank;
  }
}

/// Also while some are lost and the rounds are not formed anew yet: each edge gives and takes
/// alike.
bool keeps_the_mean(const Fleet& fleet) {
  const Schedule schedule = make_topology(fleet.topology, {.shape = {fleet.per_host}});
  for (int step = 0; step < kStepsOfACensus; ++step) {
    if (!is_symmetric(round_at(schedule, step))) return false;
  }
  return true;
}

/// What the mean of those that are left moves by in a step is no more than the n-th part of how far
/// each worker that dies in this step is from the others: some of these have mixed with it, and it
/// with none. Where nobody dies the mean stays.
void expect_little_drift(const Fleet& fleet, const Outcome& outcome) {
  for (int step = 0; step < fleet.steps; ++step) {
    const Values& before = outcome.x[at(step)];
    Values same = before;  // of those that are there after it
    for (int rank = 0; rank < std::ssize(same); ++rank) {
      if (outcome.x[at(step) + 1][at(rank)].empty()) same[at(rank)].clear();
    }
    for (int i = 0; i < kElements; ++i) {
      double most = 0;
      for (const auto& [dead, when] : fleet.deaths) {
        double far = 0;
        for (const int rank : there(before)) {
          far = std::max(far,
                         std::abs(outcome.x_at_death[at(dead)][at(i)] - before[at(rank)][at(i)]));
        }
        if (when == step || when == step + 1) most += far / static_cast<double>(there(same).size());
      }
      ASSERT_NEAR(mean_of(outcome.x[at(step) + 1], i), mean_of(same, i), most + 1e-12)
          << "step " << step;
    }
  }
}

/// All that are left come to one mean, which those rounds keep.
TEST(RoundsAnew, WhoeverDiesWheneverTheOthersMix) {
  const std::vector<std::string> topologies{"ring",         "one_peer_ring",
                                            "grid",         "base_k",
                                            "random",       "complete",
                                            "random_fixed", "torus",
                                            "star",         "alternating_exponential_ring",
                                            "exponential",  "one_peer_exponential",
                                            "directed_ring"};
  Rng rng(11);
  for (int trial = 0; trial < 40; ++trial) {
    Fleet fleet{.topology = topologies[at(trial) % topologies.size()],
                .per_host = {2, 2, 1, 2, 2},
                .steps = 14 * kEvery,
                .pattern = trial % 7 == 0   ? "gradient_gossip"
                           : trial % 5 == 0 ? "atc"
                                            : "cwa",
                .optimizer = "sgd",
                .jitter = std::chrono::microseconds(trial % 3 == 0 ? 200 : 0)};
    for (int rank = 0; rank < 9; ++rank) {
      if (rng.below(3) == 0) fleet.deaths[rank] = static_cast<int>(rng.below(100));
    }
    SCOPED_TRACE("trial " + std::to_string(trial) + " on " + fleet.topology);
    const Outcome outcome = outcome_of(fleet);
    const Values& last = outcome.x.back();
    ASSERT_EQ(there(last).size() + fleet.deaths.size(), 9U);
    const int settled = 99 + 2 * kEvery + kExchangesAhead;
    for (int i = 0; i < kElements; ++i) {
      ASSERT_NEAR(mean_of(last, i), mean_of(outcome.x[at(settled)], i), 1e-12);
    }
    if (keeps_the_mean(fleet)) expect_little_drift(fleet, outcome);
    const double apart = fleet.pattern == "gradient_gossip" ? 10 : 1e-3;
    ASSERT_LT(spread_of(last), apart);
    for (const int rank : there(last)) {
      EXPECT_EQ(outcome.lost[at(rank)].size(), fleet.deaths.size()) << "worker " << rank;
    }
  }
}

}  // namespace rounds_anew_test
}  // namespace gossamer
