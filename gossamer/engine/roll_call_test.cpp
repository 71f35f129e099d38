#include "gossamer/engine/roll_call.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "gossamer/engine/collectives.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace {

std::vector<std::unique_ptr<Transport>> workers_of_one_host(int workers) {
  ClusterSpec cluster;
  cluster.hosts.resize(static_cast<std::size_t>(workers));
  return make_threads_transports(cluster);
}

RollCallOptions with_peer(int peer) { return {.peers = {peer}}; }

/// What look() says once a note has come; nothing where it keeps still.
std::optional<std::string> said(RollCall& roll_call, Progress progress, bool in_step) {
  try {
    for (int i = 0; i < 20; ++i) {
      roll_call.look(progress, in_step);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return std::nullopt;
}

std::string text_of(int rank, int call) {
  return std::string(static_cast<std::size_t>(rank * call), static_cast<char>('a' + rank));
}

TEST(Gather, GivesEverybodyWhatAllSayByRank) {
  for (int workers = 1; workers <= 7; ++workers) {
    run_workers(workers_of_one_host(workers), [&](Transport& transport) {
      const int rank = transport.describe().rank;
      ExchangeRunner runner(transport, 10);
      Collectives collectives(runner, {even_hosts(workers, 1), rank});
      for (int call = 0; call < 3; ++call) {
        std::vector<std::string> expected;
        for (int peer = 0; peer < workers; ++peer) expected.push_back(text_of(peer, call));
        EXPECT_EQ(collectives.gather(text_of(rank, call)), expected) << workers << " workers";
      }
    });
  }
}

TEST(RollCall, StepThatAPeerWillNeverDoIsRefusedOnBothSides) {
  const auto ends = workers_of_one_host(2);
  RollCall waits(*ends[0], with_peer(1));
  RollCall comes(*ends[1], with_peer(0));
  comes.come_to("averaged()", {.steps = 10});
  const auto here = said(waits, {.steps = 11}, true);
  const auto there = said(comes, {.steps = 10}, false);
  for (const auto& text : {here, there}) {
    ASSERT_TRUE(text.has_value());
    EXPECT_NE(text->find("worker 0 in step 12 after 11 steps"), std::string::npos) << *text;
    EXPECT_NE(text->find("worker 1 in averaged() after 10 steps"), std::string::npos) << *text;
  }
}

TEST(RollCall, PeerThatIsAheadIsWaitedFor) {
  const auto ends = workers_of_one_host(2);
  RollCall waits(*ends[0], with_peer(1));
  RollCall comes(*ends[1], with_peer(0));
  comes.come_to("averaged()", {.steps = 12, .passes = 3});
  EXPECT_EQ(said(waits, {.steps = 11, .passes = 3}, true), std::nullopt);   // it has done step 12
  EXPECT_EQ(said(waits, {.steps = 12, .passes = 2}, true), std::nullopt);   // or its backward pass
  EXPECT_EQ(said(waits, {.steps = 12, .passes = 3}, false), std::nullopt);  // nobody is in a step
  EXPECT_NE(said(waits, {.steps = 12, .passes = 3}, true), std::nullopt);
}

TEST(RollCall, NotesAreNumbered) {
  const auto ends = workers_of_one_host(2);
  RollCall one(*ends[0], with_peer(1));
  RollCall other(*ends[1], with_peer(0));
  for (int call = 0; call < 5; ++call) {
    one.come_to("save()", {.steps = 4});
    other.come_to("save()", {.steps = 4});
    one.all_have_come();
    other.all_have_come();
    EXPECT_EQ(said(one, {.steps = 4}, true), std::nullopt) << "after call " << call;
  }
  other.come_to("save()", {.steps = 4});
  EXPECT_NE(said(one, {.steps = 4}, true), std::nullopt);
}

TEST(RollCall, WhoIsWaitedForIsToldOnce) {
  const auto ends = workers_of_one_host(2);
  std::vector<std::string> told;
  RollCall one(*ends[0], {.peers = {1},
                          .report =
                              [&](const std::vector<int>& ranks, const std::string& where) {
                                told.push_back(std::to_string(ranks.at(0)) + " in " + where);
                              },
                          .patience_s = 0});
  RollCall other(*ends[1], with_peer(0));
  one.come_to("load()", {});
  said(one, {}, false);
  EXPECT_EQ(told, std::vector<std::string>{"1 in load()"});
}

}  // namespace
}  // namespace gossamer
