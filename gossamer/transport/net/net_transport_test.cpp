#include "gossamer/transport/net/net_transport.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <barrier>
#include <sstream>
#include <stdexcept>

#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/net_team.h"
#include "gossamer/transport/net/packet_client.h"
#include "gossamer/transport/net/stream_wire.h"
#include "gossamer/transport/net/test_client.h"
#include "gossamer/transport/net/test_team.h"

namespace gossamer {
namespace {

using conformance::Bytes;
using conformance::finish;
using conformance::finish_failed;
using conformance::in_ms;
using conformance::patience;
using conformance::pattern;

void send(const PacketSocket& socket, const FrameHeader& header, const std::string& text = {}) {
  EXPECT_EQ(socket.send(header, std::as_bytes(std::span(text)), -1), PacketResult::done);
}

TEST(NetTransport, HangsUpOnClientsWithoutTheToken) {
  const LoneWorker lone;
  for (const char* token : {"", "open sesamf", "open sesame2"}) {
    const PacketSocket unverified = PacketSocket::connect(lone.name);
    ASSERT_TRUE(unverified);
    send_hello(unverified, 1, token);
    EXPECT_TRUE(is_hung_up(unverified)) << token;
  }
}

TEST(NetTransport, HangsUpOnRanksThatDoNotExistAndOnTheSecondOfARank) {
  const LoneWorker lone;
  for (const std::uint64_t rank : {0UL, 2UL, ~0UL}) {
    const PacketSocket unverified = PacketSocket::connect(lone.name);
    send_hello(unverified, rank, kTestToken);
    EXPECT_TRUE(is_hung_up(unverified)) << rank;
  }
  const PacketSocket first = PacketSocket::connect(lone.name);
  send_hello(first, 1, kTestToken);
  EXPECT_EQ(next_packet(first).header.type, FrameType::welcome);
  const PacketSocket second = PacketSocket::connect(lone.name);
  send_hello(second, 1, kTestToken);
  EXPECT_TRUE(is_hung_up(second));
  EXPECT_FALSE(first.is_readable());
}

TEST(NetTransport, HangsUpOnGarbage) {
  const LoneWorker lone;
  const PacketSocket unverified = PacketSocket::connect(lone.name);
  send(unverified, {.magic = 1, .type = FrameType::hello, .number = 1}, kTestToken);
  EXPECT_TRUE(is_hung_up(unverified));
}

TEST(NetTransport, AnOfferOfMemoryThatWasNotGivenEndsTheEdge) {
  for (const FrameHeader& lie :
       {FrameHeader{.type = FrameType::offer, .number = 1, .bytes = 8, .memory = 7},
        FrameHeader{.type = FrameType::offer, .number = 1, .bytes = 8},
        FrameHeader{.type = FrameType::memory, .number = 7, .bytes = 8}}) {
    const LoneWorker lone;
    const PacketSocket liar = PacketSocket::connect(lone.name);
    send_hello(liar, 1, kTestToken);
    send(liar, lie);
    Bytes landing(8);
    const Request request = lone.transport->receive(1, {}, landing, in_ms(20'000));
    EXPECT_LT(finish_failed(*lone.transport, request).elapsed_s, 19);
  }
}

TEST(NetStreams, LetsInWorkersWithTheTokenAndNobodyElse) {
  const LoneWorker lone({.share_memory = false});
  for (const char* token : {"", "open sesamf", "open sesame2"}) {
    TestClient unverified(lone.port);
    unverified.send_hello(1, token);
    EXPECT_TRUE(unverified.is_hung_up()) << token;
  }
  for (const std::uint64_t rank : {0UL, 2UL, ~0UL}) {
    TestClient unverified(lone.port);
    unverified.send_hello(rank, kTestToken);
    EXPECT_TRUE(unverified.is_hung_up()) << rank;
  }
  TestClient worker(lone.port);
  worker.send_hello(1, kTestToken);
  EXPECT_TRUE(worker.is_welcome());
  TestClient second(lone.port);
  second.send_hello(1, kTestToken);
  EXPECT_TRUE(second.is_hung_up());
}

TEST(NetStreams, HangsUpOnARepeatedHello) {
  const LoneWorker lone({.share_memory = false});
  TestClient first(lone.port);
  const Handshake handshake = handshake_with(1, first.receive_challenge());
  const HandshakeFrame sent = make_hello(kTestToken, handshake);
  TestClient replay(lone.port);  // with what it has overheard
  replay.receive_challenge();
  replay.send(sent.header, sent.text);
  EXPECT_TRUE(replay.is_hung_up());
}

TEST(NetStreams, HangsUpOnGarbageAndOnLengthsThatAreTooLarge) {
  const LoneWorker lone({.share_memory = false});
  for (const std::string& text :
       {std::string(64, 'x'), std::string("GET / HTTP/1.1\r\n\r\n") + std::string(64, ' ')}) {
    TestClient unverified(lone.port);
    ASSERT_EQ(::send(unverified.descriptor(), text.data(), text.size(), MSG_NOSIGNAL),
              std::ssize(text));
    EXPECT_TRUE(unverified.is_hung_up());
  }
  TestClient client(lone.port);
  client.receive_challenge();
  client.send({.type = FrameType::hello, .number = 1}, Bytes(1 << 20));
  EXPECT_TRUE(client.is_hung_up());
}

TEST(NetStreams, HangsUpOnClientsThatSendNothingForLong) {
  const LoneWorker lone({.share_memory = false});
  TestClient silent(lone.port);
  EXPECT_TRUE(silent.is_hung_up());
}

/// Most of the time it is the send that notices, and not the event loop.
TEST(NetStreams, AnEndThatAWriteNoticesFailsWhatIsPending) {
  const Bytes payload = pattern(1 << 20, 3);
  for (int i = 0; i < 50; ++i) {
    const LoneWorker lone({.share_memory = false});
    TestClient client(lone.port);
    client.send_hello(1, kTestToken);
    ASSERT_TRUE(client.is_welcome());
    client.send({.type = FrameType::ready, .number = 1, .bytes = payload.size()});
    const Request first = lone.transport->send(1, {.step = 1}, payload, in_ms(20'000));
    client.vanish();
    const Request second = lone.transport->send(1, {}, payload, in_ms(20'000));
    for (const Request request : {first, second}) {
      EXPECT_LT(finish_failed(*lone.transport, request).elapsed_s, 15);
    }
  }
}

TEST(NetStreams, WhatHasLeftIsSentThoughThePeerLeavesAtOnce) {
  for (int trial = 0; trial < 10; ++trial) {
    Team team(2, {.share_memory = false});
    const Bytes payload(1000);
    Bytes landing(payload.size());
    const Request received = team[1].receive(0, {}, landing, patience());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // most likely the other one knows
    const Request sent = team[0].send(1, {}, payload, patience(), {});
    finish(team[1], received);
    team.restart(1);
    finish(team[0], sent);
    if (HasFailure()) return;
  }
}

TEST(NetStreams, ListenOnOneAddressOnly) {
  for (const char* address : {"0.0.0.0", "::", "", "localhost", "1.2.3"}) {
    EXPECT_THROW(listen_for_streams(address), std::invalid_argument) << address;
  }
  const StreamListener listener = listen_for_streams("::1");
  EXPECT_GT(listener.address.port, 0);
}

TEST(NetTransport, MixesSharedMemoryAndStreams) {
  std::vector<std::unique_ptr<Transport>> team;
  // Workers 0 and 1 share memory, worker 2 is elsewhere.
  std::vector<std::string> endpoints(3);
  std::barrier all_here(3);
  team.resize(3);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      NetOptions options{.rank = rank, .workers = 3, .token = kTestToken};
      options.address = kTestHost;
      options.share_memory = rank < 2;
      options.share = [&](const std::string& mine) {
        endpoints[static_cast<std::size_t>(rank)] = mine;
        all_here.arrive_and_wait();
        return endpoints;
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
  NetOptions options{.rank = 0, .workers = 2, .token = kTestToken};
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
