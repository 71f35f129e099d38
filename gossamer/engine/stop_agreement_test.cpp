#include "gossamer/engine/stop_agreement.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/net/net_team.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace {

constexpr std::int64_t kMostSteps = 100'000;

struct Run {
  int workers = 4;
  std::string pattern = "cwa";
  std::string topology = "ring";
  UpdateAt update = UpdateAt::step;
  std::uint64_t seed = 1;
  std::set<int> told = {1};  ///< who is told to stop, each at a step of its own
  bool over_net = false;
  Lost lost = Lost::error;
};

std::vector<std::unique_ptr<Transport>> transports(const Run& run) {
  if (run.over_net) return make_net_team(run.workers);
  ClusterSpec cluster;
  cluster.hosts.resize(static_cast<std::size_t>(run.workers));
  return make_threads_transports(cluster);
}

/// The steps that each worker has done at its end.
std::set<std::int64_t> ends_of(const Run& run) {
  std::mutex mutex;
  std::set<std::int64_t> ends;
  run_workers(transports(run), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    Rng rng(run.seed, static_cast<std::uint64_t>(rank));
    const auto told_at = static_cast<std::int64_t>(1 + 20 * rng.uniform());
    StopAgreement agreement(transport, 0, run.lost);
    std::atomic<int> told = 0;
    std::vector<double> x(40, rank);
    std::vector<double> g(40, 0.1);
    EngineOptions options{
        .schedule = make_topology(run.topology, {.shape = even_hosts(run.workers, 1)}),
        .pattern = run.pattern,
        .optimizer = "sgd",
        .groups = {{.lr = 0.1}},
        .update = run.update,
        .lost = run.lost,
        .while_waiting = [&] { agreement.look(told); }};
    Engine engine(options, transport, {{DType::f64, x.data(), g.data(), 40, {{0, 40, 0}}}});
    engine.start();
    while (engine.steps_done() < kMostSteps) {
      if (run.told.contains(rank) && engine.steps_done() >= told_at) told = SIGTERM;
      if (agreement.is_last(engine.steps_done(), told)) break;
      std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(300 * rng.uniform())));
      engine.step();
    }
    engine.quiesce();
    engine.collectives().barrier();
    EXPECT_EQ(agreement.signal(), SIGTERM);
    const std::lock_guard lock(mutex);
    ends.insert(engine.steps_done());
  });
  return ends;
}

void expect_one_end(const Run& run) {
  const std::set<std::int64_t> ends = ends_of(run);
  ASSERT_EQ(ends.size(), 1U) << run.pattern << " " << run.topology << " " << run.workers;
  EXPECT_LT(*ends.begin(), 100) << run.pattern;
}

TEST(StopAgreement, AllStopAfterTheSameStepWhoeverIsTold) {
  for (const int workers : {1, 2, 3, 5, 8}) {
    for (int told = 0; told < workers; ++told) {
      expect_one_end({.workers = workers,
                      .seed = static_cast<std::uint64_t>(10 * workers + told),
                      .told = {told}});
      expect_one_end({.workers = workers,
                      .seed = static_cast<std::uint64_t>(10 * workers + told),
                      .told = {told},
                      .lost = Lost::go_on});
    }
  }
}

TEST(StopAgreement, SeveralMayBeToldAtOnce) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    expect_one_end({.workers = 6, .seed = seed, .told = {0, 1, 2, 3, 4, 5}});
    expect_one_end({.workers = 6, .seed = seed, .told = {2, 5}});
    expect_one_end({.workers = 6, .seed = seed, .told = {2, 5}, .lost = Lost::go_on});
  }
}

TEST(StopAgreement, HoldsForAllWaysToWait) {
  for (const char* pattern : {"cwa", "atc", "allreduce", "gradient_gossip"}) {
    for (const char* topology : {"ring", "one_peer_ring", "aer"}) {
      for (const UpdateAt update : {UpdateAt::step, UpdateAt::backward}) {
        expect_one_end({.pattern = pattern, .topology = topology, .update = update, .told = {3}});
      }
    }
  }
}

TEST(StopAgreement, HoldsBetweenProcesses) {
  expect_one_end({.workers = 3, .told = {2}, .over_net = true});
  expect_one_end({.workers = 3, .told = {0}, .over_net = true});
  expect_one_end({.workers = 3, .told = {2}, .over_net = true, .lost = Lost::go_on});
}

/// Who knows the step first leaves at once; the others are told nevertheless.
TEST(StopAgreement, WhoLeavesAtOnceHasToldTheOthers) {
  for (const Lost lost : {Lost::error, Lost::go_on}) {
    for (int round = 0; round < 40; ++round) {
      const bool over_net = round % 2 == 0;
      run_workers(transports({.workers = 4, .over_net = over_net}), [lost](Transport& transport) {
        const Deadline limit = Clock::now() + std::chrono::seconds(20);
        const auto give_up = [&] {
          if (Clock::now() > limit) throw std::runtime_error("it waits for ever");
        };
        StopAgreement agreement(transport, 7, lost);
        EXPECT_TRUE(agreement.is_last(7, SIGTERM, give_up));
      });
    }
  }
}

/// At the end of a run workers leave one after another, which is no reason to stop.
TEST(StopAgreement, WhoLeavesTellsNobodyToStop) {
  run_workers(transports({.workers = 3}), [](Transport& transport) {
    StopAgreement agreement(transport);
    if (transport.describe().rank == 0) return;
    for (int i = 0; i < 50; ++i) {
      agreement.look(0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_FALSE(agreement.is_last(7, 0));
  });
}

/// The others would wait for its bid for ever.
TEST(StopAgreement, WhoIsLostWhileAllAreAskedIsAnError) {
  run_workers(transports({.workers = 3}), [](Transport& transport) {
    StopAgreement agreement(transport);
    const int rank = transport.describe().rank;
    if (rank == 2) return;
    const Deadline limit = Clock::now() + std::chrono::seconds(20);
    const auto give_up = [&] {
      if (Clock::now() > limit) throw std::runtime_error("it waits for ever");
    };
    EXPECT_THROW(agreement.is_last(7, SIGTERM, give_up), TransportError) << rank;
  });
}

}  // namespace
}  // namespace gossamer
