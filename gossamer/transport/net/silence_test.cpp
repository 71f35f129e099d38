// Peers of which nothing is heard, and whether the others go on without them.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/peer.h"
#include "gossamer/transport/net/test_team.h"

namespace gossamer {
namespace {

using conformance::in_ms;
using conformance::patience;

/// In these jobs whoever has said nothing in this moment is silent, so at each beat all are.
NetOptions all_silent(std::optional<int> least_heard) {
  return {.share_memory = false,
          .longest_silence = std::chrono::nanoseconds(1),
          .least_heard = least_heard};
}

/// What becomes of a receive that each worker has open from each other one, after some beats: by
/// worker, how many have failed.
std::vector<int> failures_of(int workers, std::optional<int> least_heard) {
  Team team(workers, all_silent(least_heard));
  std::vector<std::byte> landing(8);
  std::vector<std::vector<Request>> requests(static_cast<std::size_t>(workers));
  for (int rank = 0; rank < workers; ++rank) {
    for (int peer = 0; peer < workers; ++peer) {
      if (peer == rank) continue;
      requests[static_cast<std::size_t>(rank)].push_back(
          team[rank].receive(peer, {.step = 1}, landing, patience()));
    }
  }
  const Deadline limit = in_ms(3500);  // three beats
  while (Clock::now() < limit) {
    for (int rank = 0; rank < workers; ++rank) team[rank].progress(in_ms(5));
  }
  std::vector<int> failures;
  for (int rank = 0; rank < workers; ++rank) {
    int failed = 0;
    for (const Request request : requests[static_cast<std::size_t>(rank)]) {
      if (team[rank].poll(request).state == Status::State::failed) ++failed;
      team[rank].release(request);
    }
    failures.push_back(failed);
  }
  return failures;
}

/// A wire over which nothing comes: who is heard, and when, the test says.
class MuteWire final : public Wire {
 public:
  explicit MuteWire(PeerState& state) : state_(state) {}
  void post(const NetOperation::Pointer& operation, const NetPayload&) override {
    state_.operations.add(operation);
  }
  void withdraw(NetOperation&) override {}
  void accept(AcceptedConnection&&) override {}
  void handle(EventLoop::Kind) override {}
  void maintain(const Upkeep&) override {}
  void close(const Ending&, std::optional<Deadline>) override {}

 private:
  PeerState& state_;
};

/// Whether rank 1 may go on, given how many seconds before now it has heard ranks 0, 2 and 3, when
/// a peer may be silent for 4.
bool may_go_on_after(std::vector<double> silences_s) {
  const Deadline now = Clock::now();
  EventLoop loop(std::chrono::seconds(1));
  EndedOperations ended;
  std::vector<std::shared_ptr<Peer>> peers(4);
  for (const std::size_t rank : std::vector<std::size_t>{0, 2, 3}) {
    const auto silence = std::chrono::duration<double>(silences_s[rank == 0 ? 0 : rank - 1]);
    const auto make_wire = [&](PeerState& state) {
      state.see(now - std::chrono::duration_cast<Clock::duration>(silence));
      return std::make_unique<MuteWire>(state);
    };
    peers[rank] =
        std::make_shared<Peer>(PeerOptions{.peer = static_cast<int>(rank)}, loop, ended, make_wire);
    peers[rank]->post(std::make_shared<NetOperation>());
  }
  return may_go_on(peers, now, std::chrono::seconds(4), 0);
}

TEST(NetSilence, OfAQuietPeerIsNotJudgedWhileTheOthersMayBeCutOffToo) {
  EXPECT_TRUE(may_go_on_after({1, 1, 4.1}));
  EXPECT_TRUE(may_go_on_after({1.9, 4.1, 1}));
  EXPECT_FALSE(may_go_on_after({3, 3, 4.1}));  // cut off 3 s ago, from the quiet one as well
  EXPECT_FALSE(may_go_on_after({2.1, 4.1, 2.1}));
}

TEST(NetSilence, CostsTheRequests) {
  EXPECT_EQ(failures_of(3, std::nullopt), std::vector({2, 2, 2}));
}

TEST(NetSilence, WhoeverMissesMoreThanItHearsWaits) {
  EXPECT_EQ(failures_of(3, 0), std::vector({0, 0, 0}));
}

TEST(NetSilence, OfTwoHalvesThatWithTheLowestRankGoesOn) {
  EXPECT_EQ(failures_of(2, 0), std::vector({1, 0}));
}

TEST(NetSilence, OneMayBeEnough) { EXPECT_EQ(failures_of(3, 1), std::vector({2, 2, 2})); }

TEST(NetSilence, TwoAreTooFewForThree) { EXPECT_EQ(failures_of(2, 3), std::vector({0, 0})); }

}  // namespace
}  // namespace gossamer
