// Workers that come back: what the others make of them, and of their earlier frames.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "gossamer/base/rng.h"
#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/net_transport.h"
#include "gossamer/transport/net/test_team.h"

namespace gossamer {
namespace {

using conformance::all_are;
using conformance::Bytes;
using conformance::finish_failed;
using conformance::in_ms;
using conformance::patience;
using conformance::pattern;
using conformance::same;
using conformance::wait;

constexpr std::byte kSentinel{0xE5};

/// What this generation of this worker sends with a tag.
Bytes payload_of(int rank, std::uint64_t generation, Tag tag, std::size_t size) {
  const auto seed = (static_cast<std::uint64_t>(rank) * 1000 + generation) * 1'000'000;
  return pattern(size, seed + static_cast<std::uint64_t>(tag.step));
}

/// Ends when one of them has failed or both are done, and releases both; what was received if so.
std::optional<Bytes> finish_both(Transport& sender, Request sent, Transport& receiver,
                                 Request received) {
  Status out;
  Status in;
  for (const Deadline limit = patience(); Clock::now() < limit;) {
    out = sender.poll(sent);
    in = receiver.poll(received);
    const bool failed = out.state == Status::State::failed || in.state == Status::State::failed;
    // What was lent is given back by the release of its receive.
    if (failed || in.state == Status::State::done) break;
    receiver.progress(in_ms(1));
  }
  std::optional<Bytes> content;
  if (in.state == Status::State::done) content.emplace(in.payload.begin(), in.payload.end());
  receiver.release(received);
  if (content) wait(sender, sent);
  sender.release(sent);
  return content;
}

std::optional<Bytes> attempt(Team& team, int from, int to, Tag tag, const Bytes& payload) {
  Bytes landing(payload.size());
  const Request received = team[to].receive(from, tag, landing, patience());
  const Request sent = team[from].send(to, tag, payload, patience());
  return finish_both(team[from], sent, team[to], received);
}

/// Until those that are left know the worker that has come back.
void expect_exchange(Team& team, int from, int to, int& step, std::size_t size) {
  for (const Deadline limit = in_ms(30'000); Clock::now() < limit;) {
    const Tag tag{.step = ++step};
    const Bytes payload = payload_of(from, team.generation(from), tag, size);
    if (const auto content = attempt(team, from, to, tag, payload)) {
      EXPECT_TRUE(same(*content, payload)) << from << " to " << to << ", step " << step;
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ADD_FAILURE() << from << " and " << to << " do not meet again";
}

struct Kind {
  const char* name;
  NetOptions options;
};

class NetGenerations : public ::testing::TestWithParam<Kind> {};

TEST_P(NetGenerations, AWorkerThatComesBackIsAnotherPeer) {
  Team team(3, GetParam().options);
  int step = 0;
  expect_exchange(team, 0, 1, step, 100'000);
  expect_exchange(team, 1, 2, step, 100'000);
  Bytes landing(1000);
  const Request pending = team[0].receive(1, {.step = ++step}, landing, patience());
  team.restart(1);
  const auto failure = finish_failed(team[0], pending);
  EXPECT_EQ(failure.peer, 1);
  for (const auto& [from, to] : {std::pair(0, 1), {1, 0}, {1, 2}, {2, 1}, {0, 2}}) {
    expect_exchange(team, from, to, step, 100'000);
  }
  EXPECT_EQ(team[0].describe().edges.front().sent, 200'000);  // counted over both generations
}

TEST_P(NetGenerations, NothingOfAFormerGenerationArrives) {
  Team team(3, GetParam().options);
  int step = 0;
  expect_exchange(team, 1, 0, step, 1000);
  const Tag tag{.step = ++step};
  Bytes landing(1000);
  const Request pending = team[0].receive(1, tag, landing, patience());
  const std::unique_ptr<Transport> former = team.replace(1);
  EXPECT_NE(finish_failed(team[0], pending).reason.find("restarted"), std::string::npos);

  // With the tag that worker 0 waits for again, and to worker 2, which has not met it before.
  const Bytes stale = payload_of(1, 0, tag, 1000);
  expect_exchange(team, 1, 2, step, 1000);
  const Request first = former->send(0, tag, stale, patience());
  const Request second = former->send(2, tag, stale, patience());
  for (int to : {0, 2}) {
    const Bytes payload = payload_of(1, 1, tag, 1000);
    const auto content = attempt(team, 1, to, tag, payload);
    ASSERT_TRUE(content);
    EXPECT_TRUE(same(*content, payload)) << to;
  }
  // The former one may not know that it was replaced: what it sends to where its payload was
  // asked for can leave, and is lost there.
  wait(*former, first);
  former->release(first);
  finish_failed(*former, second);
  EXPECT_EQ(landing, Bytes(1000));
}

TEST_P(NetGenerations, AClosedEdgeStaysClosedUntilOneComesBack) {
  Team team(2, GetParam().options);
  int step = 0;
  expect_exchange(team, 0, 1, step, 1000);
  team[0].close(1);
  for (int i = 0; i < 3; ++i) {
    Bytes landing(8);
    const Request request = team[0].receive(1, {.step = ++step}, landing, patience());
    EXPECT_NE(finish_failed(team[0], request).reason.find("closed"), std::string::npos);
  }
  team.restart(1);
  expect_exchange(team, 0, 1, step, 1000);
  expect_exchange(team, 1, 0, step, 1000);
}

TEST_P(NetGenerations, BothMayComeBackAtOnce) {
  Team team(2, GetParam().options);
  int step = 0;
  for (int i = 0; i < 20; ++i) {
    const std::jthread other([&] { team.restart(1); });
    team.restart(0);
  }
  expect_exchange(team, 0, 1, step, 1000);
  expect_exchange(team, 1, 0, step, 1000);
}

void wait_for_generation(Transport& transport, int peer, std::uint64_t generation) {
  for (const Deadline limit = patience(); Clock::now() < limit;) {
    if (transport.generation(peer) == generation) return;
    transport.progress(in_ms(1));
  }
  FAIL() << "the peer has not come back";
}

void expect_held_back(Transport& transport, int peer, int& step) {
  Bytes landing(8);
  const Request request = transport.receive(peer, {.step = ++step}, landing, patience());
  EXPECT_NE(finish_failed(transport, request).reason.find("restarted"), std::string::npos);
}

void expect_newcomers(Transport& transport, const std::vector<std::uint64_t>& generations) {
  std::vector<std::uint64_t> found;
  for (const auto& [peer, generation] : transport.newcomers()) {
    EXPECT_EQ(peer, 1);
    found.push_back(generation);
  }
  EXPECT_EQ(found, generations);
}

TEST_P(NetGenerations, WhoeverIsHeldBackIsLetInAsTheGenerationThatItIs) {
  Team team(2, GetParam().options);
  int step = 0;
  expect_exchange(team, 0, 1, step, 1000);
  team.restart(1);
  wait_for_generation(team[0], 1, 1);
  team[0].hold_back_newcomers();  // also of those who are there already
  expect_held_back(team[0], 1, step);
  team.restart(1);
  wait_for_generation(team[0], 1, 2);
  team[0].let_in({.peer = 1, .generation = 1});
  expect_held_back(team[0], 1, step);
  expect_newcomers(team[0], {1, 2});
  team[0].count_in(1, Standing::counted);  // agreed on before it came back
  EXPECT_EQ(team[0].standing(1), Standing::stranger);
  team[0].let_in({.peer = 1, .generation = 2});
  expect_exchange(team, 1, 0, step, 1000);
  team[0].count_in(1, Standing::agreed);
  EXPECT_EQ(team[0].standing(1), Standing::agreed);
  team[0].count_in(1, Standing::counted);
  team[0].count_in(1, Standing::agreed);  // of another call
  EXPECT_EQ(team[0].standing(1), Standing::counted);
  team[0].expel(1);  // of which nothing was heard for long; this generation was
  expect_exchange(team, 0, 1, step, 1000);
}

TEST_P(NetGenerations, WhoeverHasComeBackBeforeTheFirstTalkIsANewcomer) {
  Team team(2, GetParam().options);
  int step = 0;
  team.restart(1);
  team.make_late(0);
  team[0].hold_back_newcomers();
  expect_held_back(team[0], 1, step);
  expect_newcomers(team[0], {1});
}

TEST_P(NetGenerations, WhoeverHasNotComeYetIsLostUntilItComes) {
  Team team(4, GetParam().options, 2);
  int step = 0;
  Bytes landing(1000);
  const Request early = team[0].receive(2, {.step = ++step}, landing, patience());
  const auto failure = finish_failed(team[0], early);
  EXPECT_EQ(failure.fault, Fault::lost);
  EXPECT_EQ(failure.reason, "it has not come yet");
  expect_exchange(team, 0, 1, step, 1000);
  team.restart(2);
  for (const auto& [from, to] : {std::pair(0, 2), {2, 1}, {1, 2}, {0, 1}}) {
    expect_exchange(team, from, to, step, 1000);
  }
  const Request still = team[2].receive(3, {.step = ++step}, landing, patience());
  EXPECT_EQ(finish_failed(team[2], still).fault, Fault::lost);
}

/// A receive that the worker that comes back may or may not serve.
struct Doubtful {
  int to = 0;
  Tag tag;
  Bytes landing;
  Request received = 0;
};

TEST_P(NetGenerations, RandomRestartsBringNothingStale) {
  constexpr int kWorkers = 4;
  constexpr int kRounds = 200;
  Team team(kWorkers, GetParam().options);
  int step = 0;
  Rng rng(11, 0);
  const auto below = [&](int limit) {
    return static_cast<int>(rng.next() % static_cast<std::uint64_t>(limit));
  };
  for (int round = 0; round < kRounds; ++round) {
    const int victim = below(kWorkers);
    const std::size_t size = 1 + static_cast<std::size_t>(below(200'000));
    const std::uint64_t former = team.generation(victim);
    // The worker's last payloads, some of which arrive.
    std::vector<Doubtful> doubtful(kWorkers);
    std::vector<Bytes> last_payloads;
    for (int to = 0; to < kWorkers; ++to) {
      if (to == victim) continue;
      Doubtful& each = doubtful[static_cast<std::size_t>(to)];
      each = {.to = to, .tag = {.step = ++step}, .landing = Bytes(size, kSentinel)};
      each.received = team[to].receive(victim, each.tag, each.landing, patience());
      last_payloads.push_back(payload_of(victim, former, each.tag, size));
      team[victim].send(to, each.tag, last_payloads.back(), patience());
    }
    {
      const std::jthread elsewhere([&] { team.restart(victim); });
      const int one = (victim + 1) % kWorkers;
      const int other = (victim + 2) % kWorkers;
      const Tag tag{.step = ++step};
      const Bytes payload = payload_of(one, team.generation(one), tag, size);
      const auto content = attempt(team, one, other, tag, payload);
      EXPECT_TRUE(content && same(*content, payload)) << round;
    }
    for (Doubtful& each : doubtful) {
      if (each.received == 0) continue;
      const Status status = wait(team[each.to], each.received);
      const Bytes whole = payload_of(victim, former, each.tag, size);
      if (status.state == Status::State::done) {
        EXPECT_TRUE(same(status.payload, whole)) << round;
      }
      team[each.to].release(each.received);
      std::fill(each.landing.begin(), each.landing.end(), kSentinel);
    }
    for (int peer = 0; peer < kWorkers; ++peer) {
      if (peer == victim) continue;
      expect_exchange(team, victim, peer, step, size);
      expect_exchange(team, peer, victim, step, size);
    }
    for (const Doubtful& each : doubtful) {
      EXPECT_TRUE(all_are(each.landing, kSentinel)) << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Net, NetGenerations,
                         ::testing::Values(Kind{"memory", {}},
                                           Kind{"streams", {.share_memory = false}},
                                           Kind{"tls", {.share_memory = false, .tls = true}}),
                         [](const auto& made) { return made.param.name; });

}  // namespace
}  // namespace gossamer
