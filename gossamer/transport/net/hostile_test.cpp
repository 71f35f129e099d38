// Clients without the token, impostors with a peer's name, and peers that mean harm.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/net_team.h"
#include "gossamer/transport/net/packet_client.h"
#include "gossamer/transport/net/test_client.h"

namespace gossamer {
namespace {

using conformance::Bytes;
using conformance::finish;
using conformance::finish_failed;
using conformance::patience;
using conformance::pattern;

/// Worker 0 of two on one host; under worker 1's name listens an impostor of the test.
struct Misled {
  PacketSocket impostor;
  std::unique_ptr<Transport> transport;

  explicit Misled(PacketSocket listener, const std::string& name) : impostor(std::move(listener)) {
    NetOptions options{.rank = 0, .workers = 2, .token = kTestToken};
    options.share = [&](const std::string& mine) {
      const std::string reach = mine.substr(0, mine.find(' '));
      return std::vector<std::string>{mine, reach + " " + name + " 0 - 0"};
    };
    transport = make_net_transport(options);
  }

  PacketSocket visitor() const {
    for (const Deadline limit = patience(); Clock::now() < limit;) {
      PacketSocket next = impostor.accept();
      if (next) return next;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
  }
};

std::string name_for(const char* purpose) {
  return "gossamer-test-" + std::string(purpose) + std::to_string(::getpid());
}

TEST(Hostile, AnImpostorWithAPeersNameLearnsNothing) {
  const std::string name = name_for("name");
  const Misled misled(PacketSocket::listen(name), name);
  Bytes landing(8);
  const Request received = misled.transport->receive(1, {}, landing, patience());
  const PacketSocket visitor = misled.visitor();
  ASSERT_TRUE(visitor);
  const HandshakeFrame asked = make_challenge(random_nonce());
  visitor.send(asked.header, asked.text, -1);
  const Packet hello = next_packet(visitor);
  EXPECT_EQ(hello.header.type, FrameType::hello);
  EXPECT_EQ(text_of(hello.text).find(kTestToken), std::string::npos);
  // The hello that it has got does not make it the worker.
  const HandshakeFrame lie = make_welcome("open sesamf", {.responder_nonce = {}}, 0);
  visitor.send(lie.header, lie.text, -1);
  const auto failure = finish_failed(*misled.transport, received);
  EXPECT_NE(failure.reason.find("somebody else"), std::string::npos) << failure.reason;
}

TEST(Hostile, AnotherUserWithAPeersNameIsToldNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be another user for a moment";
  constexpr uid_t kNobody = 65'534;
  const std::string name = name_for("user");
  ASSERT_EQ(::seteuid(kNobody), 0);
  PacketSocket listener = PacketSocket::listen(name);
  ASSERT_EQ(::seteuid(0), 0);
  const Misled misled(std::move(listener), name);
  Bytes landing(8);
  const Request received = misled.transport->receive(1, {}, landing, patience());
  const auto failure = finish_failed(*misled.transport, received);
  EXPECT_NE(failure.reason.find("another user"), std::string::npos) << failure.reason;
  const PacketSocket visitor = misled.visitor();
  ASSERT_TRUE(visitor);
  EXPECT_EQ(next_packet(visitor).result, PacketResult::ended);
}

/// Connections without the token keep no worker out that has it.
TEST(Hostile, AFloodOfHalfOpenConnectionsKeepsNobodyWaiting) {
  constexpr int kFlood = 2700;
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < kFlood + 1000) GTEST_SKIP() << "needs more descriptors";
  int port = 0;
  std::vector<std::string> endpoints(2);
  std::barrier all_here(2);
  std::vector<std::unique_ptr<Transport>> team(2);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        NetOptions options{.rank = static_cast<int>(rank), .workers = 2, .token = kTestToken};
        options.address = kTestHost;
        options.share_memory = false;
        options.share = [&, rank](const std::string& mine) {
          endpoints[rank] = mine;
          all_here.arrive_and_wait();
          return endpoints;
        };
        team[rank] = make_net_transport(options);
      });
    }
  }
  port = std::stoi(endpoints[0].substr(endpoints[0].rfind(' ') + 1));
  std::vector<Descriptor> flood;
  for (int i = 0; i < kFlood; ++i) flood.push_back(connect_stream({kTestHost, port}));
  const Bytes payload = pattern(100'000, 1);
  Bytes landing(payload.size());
  const auto begin = Clock::now();
  const Request received = team[1]->receive(0, {}, landing, patience());
  const Request sent = team[0]->send(1, {}, payload, patience());
  EXPECT_EQ(finish(*team[1], received), payload);
  finish(*team[0], sent);
  const std::chrono::duration<double> took = Clock::now() - begin;
  RecordProperty("seconds", std::to_string(took.count()));
  EXPECT_LT(took.count(), 10);  // 30 until it fails, where a flood fills the room
}

double cpu_s() {
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// Gives the process so many descriptors more than it has, until it ends.
class FewDescriptors {
 public:
  explicit FewDescriptors(int more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    const Descriptor next(::dup(0));  // the lowest that is free
    few.rlim_cur = static_cast<rlim_t>(next.get() + more);
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_ = {};
};

TEST(Hostile, AConnectionWithoutADescriptorCostsNoTime) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself opens pipes, to see whether memory can be read";
#endif
  const LoneWorker lone({.share_memory = false});
  TestClient late(lone.port);
  {
    constexpr int kMany = 60;
    const FewDescriptors few(kMany + 6);
    std::vector<Descriptor> many;
    for (int i = 0; i < kMany; ++i) many.push_back(connect_stream({kTestHost, lone.port}));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double before = cpu_s();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const double used = cpu_s() - before;
    RecordProperty("cpu_s", std::to_string(used));
    EXPECT_LT(used, 0.2);
  }
  late.send_hello(1, kTestToken);
  EXPECT_TRUE(late.is_welcome());
}

/// With packets come as many descriptors as the sender likes.
TEST(Hostile, DescriptorsThatNobodyAskedForAreClosed) {
  const LoneWorker lone;
  const PacketSocket unverified = PacketSocket::connect(lone.name);
  next_packet(unverified);  // the challenge
  const auto before = open_descriptors();
  for (int i = 0; i < 200; ++i) {
    const PacketSocket other = PacketSocket::connect(lone.name);
    send_with_descriptors(other, {.type = FrameType::memory, .number = 1, .bytes = 8}, {0, 0});
    EXPECT_TRUE(is_hung_up(other));
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Hostile, APeerThatGivesTwoDescriptorsAtOnceLeavesNone) {
  const LoneWorker lone;
  const PacketSocket peer = PacketSocket::connect(lone.name);
  send_hello(peer, 1, kTestToken);
  EXPECT_EQ(next_packet(peer).header.type, FrameType::welcome);
  const auto before = open_descriptors();
  const SharedMemory memory(4096);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const int file = memory.descriptor();
    send_with_descriptors(peer, {.type = FrameType::memory, .number = i, .bytes = 8}, {file, file});
  }
  // The last frame is answered last: by then all have been handled.
  for (const FrameType last : {FrameType::offer, FrameType::withdraw}) {
    while (peer.send({.type = last, .number = 1}, {}, -1) == PacketResult::later) {
      std::this_thread::yield();
    }
  }
  Packet answer = next_packet(peer);
  while (answer.header.type == FrameType::alive) answer = next_packet(peer);
  EXPECT_EQ(answer.header.type, FrameType::back);
  EXPECT_EQ(open_descriptors(), before + 1);
}

/// Whether the worker sends `bye` to a peer of this host, whatever it sends before.
bool gets_bye(const PacketSocket& peer) {
  for (;;) {
    const Packet packet = next_packet(peer);
    if (packet.result != PacketResult::done) return false;
    if (packet.header.type == FrameType::bye) return true;
  }
}

/// Sends up to `most` frames; whether it gets `bye` for them.
bool gets_bye_for(const PacketSocket& peer, std::int64_t most, auto header_of,
                  std::span<const std::byte> data = {}, int descriptor = -1) {
  for (std::int64_t sent = 0; sent < most; ++sent) {
    PacketResult result = PacketResult::later;
    while (result == PacketResult::later) result = peer.send(header_of(sent), data, descriptor);
    if (result == PacketResult::ended) return gets_bye(peer);
    while (peer.is_readable()) {
      if (next_packet(peer).header.type == FrameType::bye) return true;
    }
  }
  return false;
}

struct LocalClient {
  LoneWorker lone;
  PacketSocket peer = PacketSocket::connect(lone.name);

  LocalClient() {
    send_hello(peer, 1, kTestToken);
    EXPECT_EQ(next_packet(peer).header.type, FrameType::welcome);
  }
};

TEST(Hostile, APeerThatOffersWithoutEndGetsBye) {
  const LocalClient client;
  const Bytes data(8000);
  const auto offer = [&](std::int64_t step) {
    return FrameHeader{.type = FrameType::offer,
                       .tag = {.step = step},
                       .number = static_cast<std::uint64_t>(step),
                       .bytes = data.size()};
  };
  EXPECT_TRUE(gets_bye_for(client.peer, 20'000, offer, data));
  Bytes landing(8);
  Transport& worker = *client.lone.transport;
  const auto failure = finish_failed(worker, worker.receive(1, {.step = -1}, landing, patience()));
  EXPECT_NE(failure.reason.find("says more than"), std::string::npos) << failure.reason;
}

TEST(Hostile, AnOfferTakesNoMoreRoomThanItHasBytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need room of their own";
#endif
  const LocalClient client;
  const auto resident_mib = [] {
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages >> pages;
    return static_cast<double>(pages) * static_cast<double>(::getpagesize()) / 1048576;
  };
  const Bytes data(1);
  const double before = resident_mib();
  constexpr std::int64_t kMany = 30'000;
  const auto offer = [&](std::int64_t step) {
    return FrameHeader{.type = FrameType::offer,
                       .tag = {.step = step},
                       .number = static_cast<std::uint64_t>(step),
                       .bytes = data.size()};
  };
  EXPECT_FALSE(gets_bye_for(client.peer, kMany, offer, data));
  // The last frame is answered last.
  PacketResult result = PacketResult::later;  // as long as the offers fill the socket
  while (result == PacketResult::later) {
    result = client.peer.send({.type = FrameType::withdraw, .number = 1}, {}, -1);
  }
  while (next_packet(client.peer).header.type == FrameType::alive) continue;
  EXPECT_LT(resident_mib() - before, 100);  // 470 where each keeps the room of a whole packet
}

TEST(Hostile, APeerThatGivesManyOffersOneNumberGetsBye) {
  const LocalClient client;
  const auto offer = [](std::int64_t step) {
    return FrameHeader{.type = FrameType::offer, .tag = {.step = step}, .number = 1};
  };
  EXPECT_TRUE(gets_bye_for(client.peer, 100'000, offer));
}

/// Each mapping is one of those that the system lets a process have.
TEST(Hostile, APeerThatGivesMemoriesWithoutEndGetsBye) {
  const LocalClient client;
  const SharedMemory memory(4096);
  const auto give = [](std::int64_t count) {
    return FrameHeader{
        .type = FrameType::memory, .number = static_cast<std::uint64_t>(count), .bytes = 8};
  };
  EXPECT_TRUE(gets_bye_for(client.peer, 20'000, give, {}, memory.descriptor()));
}

TEST(Hostile, AMemoryInWhichSomethingIsOfferedCannotBeForgotten) {
  const LocalClient client;
  const SharedMemory memory(4096);
  client.peer.send({.type = FrameType::memory, .number = 1, .bytes = 8}, {}, memory.descriptor());
  client.peer.send({.type = FrameType::offer, .number = 1, .bytes = 8, .memory = 1}, {}, -1);
  client.peer.send({.type = FrameType::forget, .number = 1}, {}, -1);
  EXPECT_TRUE(gets_bye(client.peer));
}

TEST(Hostile, APeerThatWaitsForManyThingsUnderOneNumberGetsBye) {
  const LoneWorker lone({.share_memory = false});
  TestClient peer(lone.port);
  peer.send_hello(1, kTestToken);
  ASSERT_TRUE(peer.is_welcome());
  for (std::int64_t step = 0; step < 2; ++step) {
    peer.send({.type = FrameType::ready, .tag = {.step = step}, .number = 1, .bytes = 8});
  }
  EXPECT_TRUE(peer.gets_bye());
}

/// The first send would end with the second's payload, while its own is still read.
TEST(Hostile, NoTwoPayloadsLeaveUnderOneNumber) {
  const StreamListener listener = listen_for_streams(kTestHost);
  const LoneWorker lone({.share_memory = false}, listener.address.port);
  const Bytes large(16 << 20);
  const Request sent = lone.transport->send(1, {.step = 0}, large, patience());
  const Request other = lone.transport->send(1, {.step = 1}, Bytes(8), patience());
  TestClient peer(lone.port);
  peer.send_hello(1, kTestToken);
  ASSERT_TRUE(peer.is_welcome());
  peer.send({.type = FrameType::ready, .tag = {.step = 0}, .number = 1, .bytes = large.size()});
  peer.send({.type = FrameType::ready, .tag = {.step = 1}, .number = 1, .bytes = 8});
  for (const Request request : {sent, other}) {
    const auto failure = finish_failed(*lone.transport, request);
    EXPECT_NE(failure.reason.find("a number that it still uses"), std::string::npos)
        << failure.reason;
  }
}

/// See Note [Useless frames].
TEST(Hostile, APeerWithManyUselessFramesIsReadNowAndThen) {
  const LocalClient client;
  const auto pair = [](std::int64_t count) {
    return FrameHeader{.type = count % 2 == 0 ? FrameType::offer : FrameType::withdraw,
                       .tag = {.step = count},
                       .number = static_cast<std::uint64_t>(count / 2)};
  };
  constexpr std::int64_t kMany = 90'000;
  const auto begin = Clock::now();
  EXPECT_FALSE(gets_bye_for(client.peer, kMany, pair));
  // Two beats at least, for what is more than a peer may send at once.
  EXPECT_GT(Clock::now() - begin, std::chrono::milliseconds(900));
}

TEST(Hostile, APeerThatWaitsForEverythingGetsBye) {
  const LoneWorker lone({.share_memory = false});
  TestClient peer(lone.port);
  peer.send_hello(1, kTestToken);
  ASSERT_TRUE(peer.is_welcome());
  for (std::int64_t step = 0; step < 70'000; ++step) {
    peer.send({.type = FrameType::ready,
               .tag = {.step = step},
               .number = static_cast<std::uint64_t>(step),
               .bytes = 8});
  }
  EXPECT_TRUE(peer.gets_bye());
}

TEST(Hostile, AWorkerOfAnotherVersionIsNamed) {
  const std::string name = name_for("version");
  const Misled misled(PacketSocket::listen(name), name);
  Bytes landing(8);
  const Request received = misled.transport->receive(1, {}, landing, patience());
  const PacketSocket visitor = misled.visitor();
  HandshakeFrame asked = make_challenge(random_nonce());
  asked.header.offset = kWireVersion + 1;
  visitor.send(asked.header, asked.text, -1);
  const auto failure = finish_failed(*misled.transport, received);
  EXPECT_NE(failure.reason.find("the same gossamer"), std::string::npos) << failure.reason;
}

}  // namespace
}  // namespace gossamer
