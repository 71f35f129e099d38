#include "gossamer/transport/net/acceptor.h"

#include <gtest/gtest.h>

namespace gossamer {
namespace {

/// Whether a client that has connected by this name is accepted when the acceptor looks.
bool is_accepted(Acceptor& acceptor) {
  const PacketSocket client = PacketSocket::connect(acceptor.name());
  acceptor.handle({EventLoop::Kind::local_listener, 0});
  FrameHeader header;
  std::vector<std::byte> text(200);
  Descriptor none;
  return client.receive(header, text, none) == PacketResult::done;  // it is challenged
}

int accepted_in_a_row(Acceptor& acceptor, int most) {
  int count = 0;
  while (count < most && is_accepted(acceptor)) ++count;
  return count;
}

TEST(Acceptor, AFloodCostsABurstAndThenAShareOfEachBeat) {
  EventLoop loop(std::chrono::seconds(1));
  Acceptor acceptor({.own = {}, .token = "open sesame"}, loop);
  constexpr int kMost = 10'000;
  const int burst = accepted_in_a_row(acceptor, kMost);
  EXPECT_GE(burst, 4096);
  EXPECT_LT(burst, kMost);
  EXPECT_EQ(accepted_in_a_row(acceptor, kMost), 0);
  acceptor.beat(Clock::now());
  const int of_a_beat = accepted_in_a_row(acceptor, kMost);
  EXPECT_GE(of_a_beat, 500);
  EXPECT_LE(of_a_beat, 2000);
}

}  // namespace
}  // namespace gossamer
