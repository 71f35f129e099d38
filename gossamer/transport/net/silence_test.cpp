// Peers of which nothing is heard, and whether the others go on without them.

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "gossamer/transport/conformance_fixture.h"
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

void pass_beats(Team& team, int workers) {
  const Deadline limit = in_ms(3500);  // three beats
  while (Clock::now() < limit) {
    for (int rank = 0; rank < workers; ++rank) team[rank].progress(in_ms(5));
  }
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
  pass_beats(team, workers);
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

/// Why a receive fails, in the words for the user.
std::string reason_of(Transport& transport, int peer, std::int64_t step) {
  std::vector<std::byte> landing(8);
  const Request request = transport.receive(peer, {.step = step}, landing, patience());
  const Status status = transport.poll(request);
  transport.release(request);
  try {
    if (status.error) std::rethrow_exception(status.error);
  } catch (const TransportError& failure) {
    return failure.details().reason;
  }
  return "";
}

TEST(NetSilence, IsTheReasonOfWhatComesLater) {
  Team team(2, all_silent(1));
  std::vector<std::byte> landing(8);
  const Request request = team[0].receive(1, {.step = 1}, landing, patience());
  pass_beats(team, 2);
  ASSERT_EQ(team[0].poll(request).state, Status::State::failed);
  team[0].release(request);
  team[0].expel(1);
  EXPECT_NE(reason_of(team[0], 1, 2).find("the peer has been silent for "), std::string::npos);
}

TEST(NetSilence, OfOthersSaysSo) {
  Team team(2, {.share_memory = false});
  team[0].leave_out(1);
  EXPECT_EQ(reason_of(team[0], 1, 1), "the others go on without it");
  team[1].close(0);
  EXPECT_EQ(reason_of(team[1], 0, 1), "this worker closed the peer");
}

TEST(NetSilence, TwoAreTooFewForThree) { EXPECT_EQ(failures_of(2, 3), std::vector({0, 0})); }

}  // namespace
}  // namespace gossamer
