#pragma once
/// Conformance, first part: what arrives, in which order of posting, and how waiting behaves.

#include <algorithm>
#include <atomic>
#include <numeric>

#include "gossamer/transport/conformance_fixture.h"

namespace gossamer::conformance {

TEST_P(TransportConformance, PingIsAnswered) {
  make(2);
  const Bytes ping = pattern(64, 1);
  const Bytes pong = pattern(64, 2);
  on_every_worker([&](int rank) {
    Transport& me = worker(rank);
    Bytes landing(64);
    const Request received = me.receive(1 - rank, {.step = rank}, landing, patience());
    if (rank == 0) finish(me, me.send(1, {.step = 1}, ping, patience()));
    EXPECT_EQ(finish(me, received), rank == 0 ? pong : ping);
    if (rank == 1) finish(me, me.send(0, {.step = 0}, pong, patience()));
  });
}

TEST_P(TransportConformance, EverySizeArrivesWhoeverPostsFirst) {
  make(2);
  Tag tag;
  for (const std::size_t size : {0UL, 1UL, 3UL, 1023UL, 65537UL, 16UL << 20}) {
    for (const bool receive_first : {true, false}) {
      const Bytes payload = pattern(size, 3);
      Bytes landing(size);
      Request received = 0;
      if (receive_first) received = worker(1).receive(0, tag, landing, patience());
      const Request sent = worker(0).send(1, tag, payload, patience());
      if (!receive_first) received = worker(1).receive(0, tag, landing, patience());
      EXPECT_TRUE(same(finish(worker(1), received), payload)) << size << " " << receive_first;
      finish(worker(0), sent);
      ++tag.step;
    }
  }
}

TEST_P(TransportConformance, BothDirectionsRunAtOnce) {
  make(2);
  on_every_worker([&](int rank) {
    constexpr std::size_t kSize = 1 << 20;
    Transport& me = worker(rank);
    const auto seed = static_cast<std::uint64_t>(rank);
    const Bytes mine = pattern(kSize, seed);
    Bytes landing(kSize);
    const Request sent = me.send(1 - rank, {}, mine, patience());
    const Request received = me.receive(1 - rank, {}, landing, patience());
    EXPECT_TRUE(finish(me, received) == pattern(kSize, 1 - seed));
    finish(me, sent);
  });
}

TEST_P(TransportConformance, ManyRequestsPerPeerMatchByTagInAnyOrder) {
  make(2);
  constexpr std::size_t kMessages = 200;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    std::vector<std::size_t> order(kMessages);
    std::iota(order.begin(), order.end(), std::size_t{0});
    Rng rng(seed);
    const auto shuffle = [&] {
      for (std::size_t i = kMessages; i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
    };
    const auto tag = [&](std::size_t i) {
      return Tag{static_cast<std::int64_t>(seed), static_cast<std::int32_t>(i % 20),
                 static_cast<std::int32_t>(i / 20)};
    };
    std::vector<Bytes> payloads(kMessages);
    std::vector<Bytes> landings(kMessages);
    std::vector<Request> sent(kMessages);
    std::vector<Request> received(kMessages);
    shuffle();
    for (const std::size_t i : order) {
      payloads[i] = pattern(i * 7, seed * 1000 + i);
      sent[i] = worker(0).send(1, tag(i), payloads[i], patience());
    }
    shuffle();
    for (const std::size_t i : order) {
      landings[i].resize(i * 7);
      received[i] = worker(1).receive(0, tag(i), landings[i], patience());
    }
    for (std::size_t i = 0; i < kMessages; ++i) {
      EXPECT_EQ(finish(worker(1), received[i]), payloads[i]) << "seed " << seed << " message " << i;
      finish(worker(0), sent[i]);
    }
  }
}

TEST_P(TransportConformance, AllToAllWithRandomSizesDeliversEveryByte) {
  make(6);
  constexpr int kSteps = 15;
  const auto size = [](int from, int to, int step) {
    const auto pair = static_cast<std::uint64_t>(from * 16 + to);
    return static_cast<std::size_t>(mix_bits(pair, static_cast<std::uint64_t>(step)) % 20'000);
  };
  const auto seed = [](int from, int to) { return static_cast<std::uint64_t>(from * 16 + to); };
  on_every_worker([&](int rank) {
    Transport& me = worker(rank);
    for (int step = 0; step < kSteps; ++step) {
      std::vector<Bytes> out(6);
      std::vector<Bytes> in(6);
      std::vector<Request> sent(6);
      std::vector<Request> received(6);
      for (int peer = 0; peer < 6; ++peer) {
        if (peer == rank) continue;
        const auto p = static_cast<std::size_t>(peer);
        out[p] = pattern(size(rank, peer, step), seed(rank, peer));
        in[p].resize(size(peer, rank, step));
        sent[p] = me.send(peer, {.step = step}, out[p], patience());
        received[p] = me.receive(peer, {.step = step}, in[p], patience());
      }
      for (int peer = 0; peer < 6; ++peer) {
        if (peer == rank) continue;
        const auto p = static_cast<std::size_t>(peer);
        EXPECT_TRUE(finish(me, received[p]) == pattern(in[p].size(), seed(peer, rank)))
            << peer << " to " << rank << " in step " << step;
        finish(me, sent[p]);
      }
    }
  });
}

TEST_P(TransportConformance, ManyThreadsMayUseOneTransport) {
  make(2);
  constexpr int kThreads = 6;
  constexpr int kSteps = 100;
  const auto run = [&](int rank, int stream) {
    Transport& me = worker(rank);
    const Bytes mine = pattern(257, static_cast<std::uint64_t>(10 * stream + rank));
    const Bytes theirs = pattern(257, static_cast<std::uint64_t>(10 * stream + 1 - rank));
    Bytes landing(257);
    for (int step = 0; step < kSteps; ++step) {
      const Tag tag{step, stream, 0};
      const Request received = me.receive(1 - rank, tag, landing, patience());
      const Request sent = me.send(1 - rank, tag, mine, patience());
      EXPECT_EQ(finish(me, received), theirs);
      finish(me, sent);
    }
  };
  std::vector<std::jthread> threads;
  for (int stream = 0; stream < kThreads; ++stream) {
    for (int rank = 0; rank < 2; ++rank) threads.emplace_back(run, rank, stream);
  }
}

TEST_P(TransportConformance, ProgressReturnsAtUntilWithoutSpinning) {
  make(2);
  Bytes landing(8);
  const Request request = worker(0).receive(1, {}, landing, patience());
  const Deadline start = Clock::now();
  const Deadline until = start + std::chrono::milliseconds(50);
  int returns = 0;
  for (; Clock::now() < until; ++returns) worker(0).progress(until);
  EXPECT_LT(returns, 25);
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  EXPECT_EQ(worker(0).poll(request).state, Status::State::pending);
  worker(0).release(request);
}

TEST_P(TransportConformance, ProgressReturnsWhenAnotherThreadPosts) {
  make(2);
  Bytes landing(8);
  std::atomic<bool> posting = false;
  Request request = 0;
  const Deadline start = Clock::now();
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    posting = true;
    request = worker(0).receive(1, {}, landing, patience());
  });
  while (!posting) worker(0).progress(patience());  // returns too early only without harm
  other.join();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));
  worker(0).release(request);
}

TEST_P(TransportConformance, EveryThreadHearsOfAnEndThatCameBeforeItsProgress) {
  make(2);
  const Bytes payload = pattern(8, 5);
  Bytes landing(8);
  const Request received = worker(1).receive(0, {}, landing, patience());
  for (int i = 0; i < 3; ++i) worker(1).progress(Clock::now());  // what is old news by now
  EXPECT_EQ(worker(1).poll(received).state, Status::State::pending);
  const Request sent = worker(0).send(1, {}, payload, patience());
  finish(worker(0), sent);
  const Deadline start = Clock::now();
  std::jthread([&] { EXPECT_EQ(wait(worker(1), received).state, Status::State::done); }).join();
  worker(1).progress(patience());  // this thread last saw it pending
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(30));
  EXPECT_EQ(finish(worker(1), received), payload);
}

TEST_P(TransportConformance, ProgressReturnsWhenARequestEnds) {
  make(2);
  for (int step = 0; step < 200; ++step) {
    Bytes landing(8);
    const Bytes payload = pattern(8, 5);
    const Request received = worker(1).receive(0, {.step = step}, landing, patience());
    Request sent = 0;
    std::jthread other([&] { sent = worker(0).send(1, {.step = step}, payload, patience()); });
    EXPECT_EQ(finish(worker(1), received), payload);  // hangs if the wake-up is lost
    other.join();
    finish(worker(0), sent);
  }
}

TEST_P(TransportConformance, DescribeCountsPayloadBytesByPeer) {
  make(3);
  expect_exchange(0, 1, {.step = 0}, 1000);
  expect_exchange(0, 1, {.step = 1}, 24);
  expect_exchange(1, 0, {.step = 0}, 7);
  const TransportInfo info = worker(0).describe();
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.rank, 0);
  EXPECT_EQ(info.workers, 3);
  ASSERT_EQ(info.edges.size(), 1U);  // never talked to worker 2
  EXPECT_EQ(info.edges[0].peer, 1);
  EXPECT_EQ(info.edges[0].sent, 1024);
  EXPECT_EQ(info.edges[0].received, 7);
  EXPECT_EQ(worker(1).describe().edges.at(0).received, 1024);
}

}  // namespace gossamer::conformance
