#include "gossamer/transport/net/net_transport.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <barrier>
#include <sstream>
#include <stdexcept>

#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/guest.h"
#include "gossamer/transport/net/net_team.h"
#include "gossamer/transport/net/packet_guest.h"
#include "gossamer/transport/net/stream_peer.h"

namespace gossamer {
namespace {

using conformance::Bytes;
using conformance::finish;
using conformance::finish_failed;
using conformance::in_ms;
using conformance::patience;
using conformance::pattern;

void say(const PacketSocket& socket, const Words& words, const std::string& text = {}) {
  EXPECT_EQ(socket.send(words, std::as_bytes(std::span(text)), -1), PacketResult::done);
}

TEST(NetTransport, HangsUpOnWhoeverDoesNotKnowTheToken) {
  const Alone alone;
  for (const char* token : {"", "open sesamf", "open sesame2"}) {
    const PacketSocket stranger = PacketSocket::connect(alone.name);
    ASSERT_TRUE(stranger);
    introduce(stranger, 1, token);
    EXPECT_TRUE(is_hung_up(stranger)) << token;
  }
}

TEST(NetTransport, HangsUpOnRanksThatDoNotExistAndOnTheSecondOfARank) {
  const Alone alone;
  for (const std::uint64_t rank : {0UL, 2UL, ~0UL}) {
    const PacketSocket stranger = PacketSocket::connect(alone.name);
    introduce(stranger, rank, kGuestToken);
    EXPECT_TRUE(is_hung_up(stranger)) << rank;
  }
  const PacketSocket first = PacketSocket::connect(alone.name);
  introduce(first, 1, kGuestToken);
  EXPECT_EQ(next_packet(first).words.say, Say::welcome);
  const PacketSocket second = PacketSocket::connect(alone.name);
  introduce(second, 1, kGuestToken);
  EXPECT_TRUE(is_hung_up(second));
  EXPECT_FALSE(first.has_news());
}

TEST(NetTransport, HangsUpOnGarbage) {
  const Alone alone;
  const PacketSocket stranger = PacketSocket::connect(alone.name);
  say(stranger, {.magic = 1, .say = Say::hello, .number = 1}, kGuestToken);
  EXPECT_TRUE(is_hung_up(stranger));
}

TEST(NetTransport, AnOfferOfMemoryThatWasNotGivenEndsTheEdge) {
  for (const Words& lie : {Words{.say = Say::offer, .number = 1, .bytes = 8, .memory = 7},
                           Words{.say = Say::offer, .number = 1, .bytes = 8},
                           Words{.say = Say::memory, .number = 7, .bytes = 8}}) {
    const Alone alone;
    const PacketSocket liar = PacketSocket::connect(alone.name);
    introduce(liar, 1, kGuestToken);
    say(liar, lie);
    Bytes landing(8);
    const Request request = alone.transport->receive(1, {}, landing, in_ms(20'000));
    EXPECT_LT(finish_failed(*alone.transport, request).elapsed_s, 19);
  }
}

TEST(NetStreams, LetsInWhoeverKnowsTheTokenAndNobodyElse) {
  const Alone alone({.share_memory = false});
  for (const char* token : {"", "open sesamf", "open sesame2"}) {
    Guest stranger(alone.port);
    stranger.introduce(1, token);
    EXPECT_TRUE(stranger.is_hung_up()) << token;
  }
  for (const std::uint64_t rank : {0UL, 2UL, ~0UL}) {
    Guest stranger(alone.port);
    stranger.introduce(rank, kGuestToken);
    EXPECT_TRUE(stranger.is_hung_up()) << rank;
  }
  Guest worker(alone.port);
  worker.introduce(1, kGuestToken);
  EXPECT_TRUE(worker.is_welcome());
  Guest second(alone.port);
  second.introduce(1, kGuestToken);
  EXPECT_TRUE(second.is_hung_up());
}

TEST(NetStreams, HangsUpOnARepeatedHello) {
  const Alone alone({.share_memory = false});
  Guest first(alone.port);
  const Greeting said = hello(kGuestToken, meeting_with(1, first.challenged()));
  Guest replay(alone.port);  // with what it has overheard
  replay.challenged();
  replay.say(said.words, said.text);
  EXPECT_TRUE(replay.is_hung_up());
}

TEST(NetStreams, HangsUpOnGarbageAndOnLengthsThatAreTooLarge) {
  const Alone alone({.share_memory = false});
  for (const std::string& text :
       {std::string(64, 'x'), std::string("GET / HTTP/1.1\r\n\r\n") + std::string(64, ' ')}) {
    Guest stranger(alone.port);
    ASSERT_EQ(::send(stranger.descriptor(), text.data(), text.size(), MSG_NOSIGNAL),
              std::ssize(text));
    EXPECT_TRUE(stranger.is_hung_up());
  }
  Guest talker(alone.port);
  talker.challenged();
  talker.say({.say = Say::hello, .number = 1}, Bytes(1 << 20));
  EXPECT_TRUE(talker.is_hung_up());
}

TEST(NetStreams, HangsUpOnWhoeverSaysNothingForLong) {
  const Alone alone({.share_memory = false});
  Guest silent(alone.port);
  EXPECT_TRUE(silent.is_hung_up());
}

/// Most of the time it is the send that notices, and not whoever listens.
TEST(NetStreams, AnEndThatAWriteNoticesFailsWhatIsPending) {
  const Bytes payload = pattern(1 << 20, 3);
  for (int i = 0; i < 50; ++i) {
    const Alone alone({.share_memory = false});
    Guest guest(alone.port);
    guest.introduce(1, kGuestToken);
    ASSERT_TRUE(guest.is_welcome());
    guest.say({.say = Say::ready, .number = 1, .bytes = payload.size()});
    const Request first = alone.transport->send(1, {.step = 1}, payload, in_ms(20'000));
    guest.vanish();
    const Request second = alone.transport->send(1, {}, payload, in_ms(20'000));
    for (const Request request : {first, second}) {
      EXPECT_LT(finish_failed(*alone.transport, request).elapsed_s, 15);
    }
  }
}

TEST(NetStreams, ListenOnOneAddressOnly) {
  for (const char* address : {"0.0.0.0", "::", "", "localhost", "1.2.3"}) {
    EXPECT_THROW(listen_for_streams(address), std::invalid_argument) << address;
  }
  const StreamDoor door = listen_for_streams("::1");
  EXPECT_GT(door.address.port, 0);
}

TEST(NetTransport, MixesSharedMemoryAndStreams) {
  std::vector<std::unique_ptr<Transport>> team;
  // Workers 0 and 1 share memory, worker 2 is elsewhere.
  std::vector<std::string> words(3);
  std::barrier all_here(3);
  team.resize(3);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      NetOptions options{.rank = rank, .workers = 3, .token = kGuestToken};
      options.address = kGuestHost;
      options.share_memory = rank < 2;
      options.share = [&](const std::string& mine) {
        words[static_cast<std::size_t>(rank)] = mine;
        all_here.arrive_and_wait();
        return words;
      };
      team[static_cast<std::size_t>(rank)] = make_net_transport(options);
    });
  }
  threads.clear();
  EXPECT_EQ(team[0]->describe().lends, Lends::shared_memory);
  EXPECT_EQ(team[2]->describe().lends, Lends::nothing);
  const Bytes payload = pattern(300'000, 4);
  for (int to : {1, 2}) {
    Bytes landing(payload.size());
    Transport& receiver = *team[static_cast<std::size_t>(to)];
    const Request received = receiver.receive(0, {}, landing, patience());
    const Request sent = team[0]->send(to, {}, payload, patience());
    EXPECT_EQ(finish(receiver, received), payload);
    finish(*team[0], sent);
  }
}

TEST(NetTransport, RefusesWorkersThatCannotShareMemory) {
  NetOptions options{.rank = 0, .workers = 2, .token = kGuestToken};
  options.share = [](const std::string& mine) {
    return std::vector<std::string>{mine, "elsewhere gossamer-1 0 - 0"};
  };
  EXPECT_THROW(make_net_transport(options), std::invalid_argument);
  options.rank = 2;
  EXPECT_THROW(make_net_transport(options), std::invalid_argument);
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
