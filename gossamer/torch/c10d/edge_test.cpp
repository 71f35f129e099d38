#include "gossamer/torch/c10d/edge.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

using WireBytes = std::vector<std::byte>;
using OperationPtr = C10dEdge::OperationPtr;
constexpr std::size_t kLarge = 3 * kFrameDataBytes + 5;  // four frames

WireBytes pattern(std::size_t size, std::uint64_t seed) {
  WireBytes bytes(size);
  Rng rng(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.next());
  return bytes;
}

/// Both ends of an edge, and frames that travel when the test says so.
class C10dEdges : public ::testing::Test {
 protected:
  static OperationPtr operation(bool sending, std::int64_t step) {
    return std::make_shared<C10dOperation>(
        C10dOperation{.sending = sending,
                      .rank = sending ? 0 : 1,
                      .peer = sending ? 1 : 0,
                      .tag = {.step = step},
                      .payload = {},
                      .landing = {},
                      .posted = Clock::now(),
                      .deadline = Clock::now() + std::chrono::hours(1),
                      .error = nullptr});
  }
  OperationPtr send(const WireBytes& payload, std::int64_t step = 0) {
    auto posted = operation(true, step);
    posted->payload = payload;
    sender_.post(posted);
    return posted;
  }
  OperationPtr receive(WireBytes& landing, std::int64_t step = 0) {
    auto posted = operation(false, step);
    posted->landing = landing;
    receiver_.post(posted);
    return posted;
  }
  /// At most `limit` frames; how many there were.
  static int carry(C10dEdge& from, C10dEdge& to, int limit = 1000) {
    int carried = 0;
    for (; carried < limit; ++carried) {
      WireBytes frame(kFrameBytes);
      frame.resize(from.take_frame(frame));
      if (frame.empty()) break;
      to.hand_over(frame);
    }
    return carried;
  }
  void carry_all() {
    while (carry(receiver_, sender_) + carry(sender_, receiver_) > 0) {
    }
  }
  static void give(C10dEdge& to, const C10dFrameHeader& header,
                   std::size_t bytes = sizeof(header)) {
    WireBytes frame(bytes);
    put_header(frame, header);
    to.hand_over(frame);
  }
  static Status::State state(const C10dEdge& edge, const OperationPtr& operation) {
    return edge.status(*operation).state;
  }
  static std::string reason(const C10dEdge& edge, const OperationPtr& operation) {
    try {
      std::rethrow_exception(edge.status(*operation).error);
    } catch (const TransportError& error) {
      return error.details().reason;
    }
  }

  std::shared_ptr<WakeUp> wake_up_ = std::make_shared<WakeUp>();
  C10dEdge sender_{0, 1, wake_up_};
  C10dEdge receiver_{1, 0, wake_up_};
};

constexpr auto kPending = Status::State::pending;
constexpr auto kDone = Status::State::done;
constexpr auto kFailed = Status::State::failed;

TEST_F(C10dEdges, NothingTravelsBeforeItIsWanted) {
  const WireBytes payload = pattern(100, 1);
  const auto sent = send(payload);
  EXPECT_EQ(carry(sender_, receiver_), 0);
  WireBytes landing(100);
  const auto received = receive(landing);
  EXPECT_EQ(carry(receiver_, sender_), 1);
  EXPECT_EQ(carry(sender_, receiver_), 1);
  EXPECT_EQ(state(sender_, sent), kDone);
  EXPECT_EQ(state(receiver_, received), kDone);
  EXPECT_EQ(landing, payload);
}

TEST_F(C10dEdges, PayloadsAreCutAtTheFrameSize) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kFrameDataBytes, kFrameDataBytes + 1, kLarge}) {
    const auto step = static_cast<std::int64_t>(size);
    const WireBytes payload = pattern(size, size);
    WireBytes landing(size);
    const auto received = receive(landing, step);
    const auto sent = send(payload, step);
    carry(receiver_, sender_);
    const auto frames = std::max<std::size_t>(1, (size + kFrameDataBytes - 1) / kFrameDataBytes);
    EXPECT_EQ(carry(sender_, receiver_), static_cast<int>(frames)) << size;
    EXPECT_EQ(state(receiver_, received), kDone);
    EXPECT_TRUE(landing == payload) << size;
  }
}

TEST_F(C10dEdges, AReceiveGivenUpHalfWayLeavesTheSendToTheNext) {
  const WireBytes payload = pattern(kLarge, 1);
  WireBytes first(kLarge);
  WireBytes second(kLarge);
  const auto sent = send(payload);
  const auto given_up = receive(first);
  carry(receiver_, sender_);
  carry(sender_, receiver_, 2);
  receiver_.cancel(*given_up);
  const WireBytes before = first;
  carry(sender_, receiver_, 1);  // under way when it was called back
  carry(receiver_, sender_);
  EXPECT_EQ(carry(sender_, receiver_), 0);
  EXPECT_EQ(state(sender_, sent), kPending);
  const auto received = receive(second);
  carry_all();
  EXPECT_EQ(state(sender_, sent), kDone);
  EXPECT_EQ(state(receiver_, received), kDone);
  EXPECT_TRUE(second == payload);
  EXPECT_TRUE(first == before);
}

TEST_F(C10dEdges, ASendGivenUpHalfWayLeavesTheReceiveToTheNext) {
  const WireBytes wrong = pattern(kLarge, 1);
  const WireBytes payload = pattern(kLarge, 2);
  WireBytes landing(kLarge);
  const auto received = receive(landing);
  const auto given_up = send(wrong);
  carry(receiver_, sender_);
  carry(sender_, receiver_, 2);
  sender_.cancel(*given_up);
  EXPECT_EQ(carry(sender_, receiver_), 0);
  EXPECT_EQ(state(receiver_, received), kPending);
  send(payload);
  carry_all();
  EXPECT_EQ(state(receiver_, received), kDone);
  EXPECT_TRUE(landing == payload);
  EXPECT_EQ(sender_.traffic().sent, static_cast<std::int64_t>(kLarge));
}

TEST_F(C10dEdges, AReceiveGivenUpBeforeThePeerHeardOfItSaysNothing) {
  WireBytes landing(8);
  receiver_.cancel(*receive(landing));
  EXPECT_EQ(carry(receiver_, sender_), 0);
}

TEST_F(C10dEdges, OtherTransfersGoOnWhenOneIsCalledBack) {
  const WireBytes a = pattern(kLarge, 1);
  const WireBytes b = pattern(kLarge, 2);
  WireBytes landing_a(kLarge);
  WireBytes landing_b(kLarge);
  const auto receive_a = receive(landing_a, 1);
  const auto receive_b = receive(landing_b, 2);
  send(a, 1);
  send(b, 2);
  carry(receiver_, sender_);
  carry(sender_, receiver_, 1);
  receiver_.cancel(*receive_a);
  carry_all();
  EXPECT_EQ(state(receiver_, receive_b), kDone);
  EXPECT_TRUE(landing_b == b);
}

TEST_F(C10dEdges, DeadlinesSayHowFarItCame) {
  const WireBytes payload = pattern(kLarge, 1);
  WireBytes landing(kLarge);
  const auto received = receive(landing);
  const auto sent = send(payload);
  carry(receiver_, sender_);
  carry(sender_, receiver_, 1);
  EXPECT_FALSE(sender_.expire(*sent, sent->deadline - std::chrono::seconds(1)));
  EXPECT_TRUE(sender_.expire(*sent, sent->deadline));
  EXPECT_TRUE(receiver_.expire(*received, received->deadline));
  const std::string part =
      std::to_string(kFrameDataBytes) + " of " + std::to_string(kLarge) + " bytes have been ";
  EXPECT_EQ(reason(sender_, sent), "deadline passed; " + part + "sent");
  EXPECT_EQ(reason(receiver_, received), "deadline passed; " + part + "received");
}

TEST_F(C10dEdges, ClosingIsAnsweredOnceAndEndsTheFrames) {
  WireBytes landing(8);
  const auto pending = receive(landing);
  carry_all();
  sender_.close(/*leaving=*/false);
  EXPECT_TRUE(sender_.await_frame());
  EXPECT_EQ(carry(sender_, receiver_), 1);
  EXPECT_FALSE(sender_.await_frame());
  EXPECT_EQ(reason(receiver_, pending), "the peer closed the connection");
  EXPECT_TRUE(receiver_.peer_closed());
  EXPECT_EQ(carry(receiver_, sender_), 1);
  EXPECT_TRUE(sender_.peer_closed());
  EXPECT_FALSE(receiver_.await_frame());
  EXPECT_EQ(carry(sender_, receiver_), 0);
}

TEST_F(C10dEdges, ABrokenLinkFailsWhatIsPendingAndWhatComesLater) {
  WireBytes landing(8);
  const auto pending = receive(landing, 1);
  receiver_.break_off("gone");
  EXPECT_FALSE(receiver_.await_frame());
  EXPECT_EQ(reason(receiver_, pending), "gone");
  EXPECT_EQ(reason(receiver_, receive(landing, 2)), "gone");
  EXPECT_EQ(state(receiver_, pending), kFailed);
}

TEST_F(C10dEdges, FramesThatMakeNoSenseAreRefused) {
  const WireBytes untouched(100, std::byte{7});
  WireBytes landing = untouched;
  receive(landing);
  const C10dFrameHeader good{
      .kind = FrameKind::data, .id = 1, .total = 100, .offset = 0, .length = 50};
  const std::size_t size = sizeof(good) + 50;
  const auto spoilt = [&](const std::function<void(C10dFrameHeader&)>& spoil) {
    C10dFrameHeader header = good;
    spoil(header);
    return header;
  };
  const std::vector<C10dFrameHeader> bad{
      spoilt([](C10dFrameHeader& h) { h.magic = 0; }),
      spoilt([](C10dFrameHeader& h) { h.kind = static_cast<FrameKind>(99); }),
      spoilt([](C10dFrameHeader& h) { h.total = 101; }),
      spoilt([](C10dFrameHeader& h) { h.offset = 50; }),
      spoilt([](C10dFrameHeader& h) { h.length = 51; }),
      spoilt([](C10dFrameHeader& h) { h.length = ~std::uint64_t{0}; }),
  };
  for (const C10dFrameHeader& header : bad) {
    EXPECT_THROW(give(receiver_, header, size), std::runtime_error);
  }
  EXPECT_THROW(
      give(receiver_, spoilt([](C10dFrameHeader& h) { h.length = 101; }), sizeof(good) + 101),
      std::runtime_error);
  EXPECT_EQ(landing, untouched);
  give(receiver_, spoilt([](C10dFrameHeader& h) { h.id = 2; }), size);  // given up long ago
  EXPECT_EQ(landing, untouched);
  give(receiver_, good, size);
  EXPECT_EQ(landing[49], std::byte{0});
  EXPECT_EQ(landing[50], std::byte{7});
}

}  // namespace
}  // namespace gossamer
