#include "gossamer/transport/net/net_transport.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/net_team.h"
#include "gossamer/transport/net/packet_socket.h"

namespace gossamer {
namespace {

using conformance::Bytes;
using conformance::finish;
using conformance::finish_failed;
using conformance::in_ms;
using conformance::patience;
using conformance::pattern;

constexpr const char* kToken = "open sesame";

/// Worker 0 of two, and where it listens; worker 1 is whoever the test lets be it.
struct Alone {
  std::unique_ptr<Transport> transport;
  std::string name;

  Alone() {
    NetOptions options{.rank = 0, .workers = 2, .token = kToken};
    options.share = [this](const std::string& mine) {
      name = mine.substr(mine.rfind(' ') + 1);
      return std::vector<std::string>{mine, reach_of_shared_memory() + " gossamer-nobody"};
    };
    transport = make_net_transport(options);
  }
};

void say(const PacketSocket& socket, const Words& words, const std::string& text = {}) {
  EXPECT_EQ(socket.send(words, std::as_bytes(std::span(text)), -1), PacketResult::done);
}

/// Whether the other end hangs up.
bool is_hung_up(const PacketSocket& socket) {
  Words words;
  Bytes data;
  Descriptor descriptor;
  const Deadline limit = in_ms(20'000);
  while (Clock::now() < limit) {
    const PacketResult result = socket.receive(words, data, descriptor);
    if (result == PacketResult::ended) return true;
    if (result == PacketResult::later) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST(NetTransport, HangsUpOnWhoeverDoesNotKnowTheToken) {
  const Alone alone;
  for (const char* token : {"", "open sesamf", "open sesame2"}) {
    const PacketSocket stranger = PacketSocket::connect(alone.name);
    ASSERT_TRUE(stranger);
    say(stranger, {.say = Say::hello, .number = 1}, token);
    EXPECT_TRUE(is_hung_up(stranger)) << token;
  }
}

TEST(NetTransport, HangsUpOnRanksThatDoNotExistAndOnTheSecondOfARank) {
  const Alone alone;
  for (const std::uint64_t rank : {0UL, 2UL, ~0UL}) {
    const PacketSocket stranger = PacketSocket::connect(alone.name);
    say(stranger, {.say = Say::hello, .number = rank}, kToken);
    EXPECT_TRUE(is_hung_up(stranger)) << rank;
  }
  const PacketSocket first = PacketSocket::connect(alone.name);
  say(first, {.say = Say::hello, .number = 1}, kToken);
  const PacketSocket second = PacketSocket::connect(alone.name);
  say(second, {.say = Say::hello, .number = 1}, kToken);
  EXPECT_TRUE(is_hung_up(second));
  EXPECT_FALSE(first.has_news());
}

TEST(NetTransport, HangsUpOnGarbage) {
  const Alone alone;
  const PacketSocket stranger = PacketSocket::connect(alone.name);
  say(stranger, {.magic = 1, .say = Say::hello, .number = 1}, kToken);
  EXPECT_TRUE(is_hung_up(stranger));
}

TEST(NetTransport, AnOfferOfMemoryThatWasNotGivenEndsTheEdge) {
  for (const Words& lie : {Words{.say = Say::offer, .number = 1, .bytes = 8, .memory = 7},
                           Words{.say = Say::offer, .number = 1, .bytes = 8},
                           Words{.say = Say::memory, .number = 7, .bytes = 8}}) {
    const Alone alone;
    const PacketSocket liar = PacketSocket::connect(alone.name);
    say(liar, {.say = Say::hello, .number = 1}, kToken);
    say(liar, lie);
    Bytes landing(8);
    const Request request = alone.transport->receive(1, {}, landing, in_ms(20'000));
    EXPECT_LT(finish_failed(*alone.transport, request).elapsed_s, 19);
  }
}

TEST(NetTransport, RefusesWorkersThatCannotShareMemory) {
  NetOptions options{.rank = 0, .workers = 2, .token = kToken};
  options.share = [](const std::string& mine) {
    return std::vector<std::string>{mine, "elsewhere gossamer-1"};
  };
  EXPECT_THROW(make_net_transport(options), std::invalid_argument);
  options.rank = 2;
  EXPECT_THROW(make_net_transport(options), std::invalid_argument);
}

std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

TEST(NetTransport, LeavesNoDescriptorBehind) {
  const auto run = [] {
    const auto team = make_net_team(3);
    const Bytes payload = pattern(100'000, 1);
    Bytes landing(payload.size());
    for (std::size_t to : {1UL, 2UL}) {
      const Request received = team[to]->receive(0, {}, landing, patience());
      const Request sent = team[0]->send(static_cast<int>(to), {}, payload, patience());
      EXPECT_EQ(finish(*team[to], received), payload);
      finish(*team[0], sent);
    }
  };
  run();
  const auto before = open_descriptors();
  for (int i = 0; i < 3; ++i) run();
  EXPECT_EQ(open_descriptors(), before);
}

TEST(NetTransport, StagedPayloadsUseTheSameMemoryAgain) {
  const auto team = make_net_team(2);
  const Bytes payload = pattern(100'000, 1);
  Bytes landing(payload.size());
  std::ptrdiff_t after_first = 0;
  for (int step = 0; step < 500; ++step) {
    const Request received = team[1]->receive(0, {.step = step}, landing, patience());
    const Request sent = team[0]->send(1, {.step = step}, payload, patience());
    EXPECT_EQ(finish(*team[1], received), payload);
    finish(*team[0], sent);
    if (step == 0) after_first = open_descriptors();
  }
  EXPECT_EQ(open_descriptors(), after_first);
}

TEST(NetTransport, ReadsLentMemoryWhereItIs) {
  const auto team = make_net_team(2);
  const auto memory = std::make_shared<SharedMemory>(4096);
  Bytes landing(1000);
  const Request received = team[1]->receive(0, {}, landing, patience());
  const Request sent = team[0]->send(1, {}, {memory->data() + 8, 1000}, patience(),
                                     std::shared_ptr<const SharedMemory>(memory));
  const Status status = conformance::wait(*team[1], received);
  ASSERT_EQ(status.state, Status::State::done);
  memory->data()[8 + 999] = std::byte{9};  // not what a sender may do, but it shows
  EXPECT_EQ(status.payload[999], std::byte{9});
  team[1]->release(received);
  finish(*team[0], sent);
}

}  // namespace
}  // namespace gossamer
