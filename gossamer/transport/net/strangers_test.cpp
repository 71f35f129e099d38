// What comes to a worker's doors, or waits behind a peer's name, without being of the job.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/guest.h"
#include "gossamer/transport/net/net_team.h"
#include "gossamer/transport/net/packet_guest.h"

namespace gossamer {
namespace {

using conformance::Bytes;
using conformance::finish;
using conformance::finish_failed;
using conformance::patience;
using conformance::pattern;

/// Worker 0 of two on one host; under worker 1's name listens whoever the test says.
struct Misled {
  PacketSocket impostor;
  std::unique_ptr<Transport> transport;

  explicit Misled(PacketSocket listener, const std::string& name) : impostor(std::move(listener)) {
    NetOptions options{.rank = 0, .workers = 2, .token = kGuestToken};
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

TEST(Strangers, WhoeverHasAPeersNameLearnsNothing) {
  const std::string name = name_for("name");
  const Misled misled(PacketSocket::listen(name), name);
  Bytes landing(8);
  const Request received = misled.transport->receive(1, {}, landing, patience());
  const PacketSocket visitor = misled.visitor();
  ASSERT_TRUE(visitor);
  const Greeting asked = challenge(random_nonce());
  visitor.send(asked.words, asked.text, -1);
  const Packet said = next_packet(visitor);
  EXPECT_EQ(said.words.say, Say::hello);
  EXPECT_EQ(text_of(said.text).find(kGuestToken), std::string::npos);
  // What it has learnt does not make it the worker.
  const Greeting lie = welcome("open sesamf", {.asked = {}}, 0);
  visitor.send(lie.words, lie.text, -1);
  const auto failure = finish_failed(*misled.transport, received);
  EXPECT_NE(failure.reason.find("somebody else"), std::string::npos) << failure.reason;
}

TEST(Strangers, AnotherUserWithAPeersNameIsToldNothing) {
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

/// Without the token, they keep nobody out who has it.
TEST(Strangers, AFloodOfHalfOpenConnectionsKeepsNobodyWaiting) {
  constexpr int kFlood = 2700;
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < kFlood + 1000) GTEST_SKIP() << "needs more descriptors";
  int port = 0;
  std::vector<std::string> words(2);
  std::barrier all_here(2);
  std::vector<std::unique_ptr<Transport>> team(2);
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        NetOptions options{.rank = static_cast<int>(rank), .workers = 2, .token = kGuestToken};
        options.address = kGuestHost;
        options.share_memory = false;
        options.share = [&, rank](const std::string& mine) {
          words[rank] = mine;
          all_here.arrive_and_wait();
          return words;
        };
        team[rank] = make_net_transport(options);
      });
    }
  }
  port = std::stoi(words[0].substr(words[0].rfind(' ') + 1));
  std::vector<Descriptor> flood;
  for (int i = 0; i < kFlood; ++i) flood.push_back(connect_stream({kGuestHost, port}));
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

TEST(Strangers, WhomThereIsNoDescriptorForCostsNoTime) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer itself opens pipes, to see whether memory can be read";
#endif
  const Alone alone({.share_memory = false});
  Guest late(alone.port);
  {
    constexpr int kMany = 60;
    const FewDescriptors few(kMany + 6);
    std::vector<Descriptor> many;
    for (int i = 0; i < kMany; ++i) many.push_back(connect_stream({kGuestHost, alone.port}));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const double before = cpu_s();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const double used = cpu_s() - before;
    RecordProperty("cpu_s", std::to_string(used));
    EXPECT_LT(used, 0.2);
  }
  late.introduce(1, kGuestToken);
  EXPECT_TRUE(late.is_welcome());
}

/// With packets come as many descriptors as the sender likes.
TEST(Strangers, DescriptorsThatNobodyAskedForAreClosed) {
  const Alone alone;
  const PacketSocket stranger = PacketSocket::connect(alone.name);
  next_packet(stranger);  // the challenge
  const auto before = open_descriptors();
  for (int i = 0; i < 200; ++i) {
    const PacketSocket other = PacketSocket::connect(alone.name);
    send_with_descriptors(other, {.say = Say::memory, .number = 1, .bytes = 8}, {0, 0});
    EXPECT_TRUE(is_hung_up(other));
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Strangers, APeerThatGivesTwoDescriptorsAtOnceLeavesNone) {
  const Alone alone;
  const PacketSocket peer = PacketSocket::connect(alone.name);
  introduce(peer, 1, kGuestToken);
  EXPECT_EQ(next_packet(peer).words.say, Say::welcome);
  const auto before = open_descriptors();
  const SharedMemory memory(4096);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const int file = memory.descriptor();
    send_with_descriptors(peer, {.say = Say::memory, .number = i, .bytes = 8}, {file, file});
  }
  // What is said last is answered last: by then all of it has been heard.
  for (const Say last : {Say::offer, Say::withdraw}) {
    while (peer.send({.say = last, .number = 1}, {}, -1) == PacketResult::later) {
      std::this_thread::yield();
    }
  }
  Packet answer = next_packet(peer);
  while (answer.words.say == Say::alive) answer = next_packet(peer);
  EXPECT_EQ(answer.words.say, Say::back);
  EXPECT_EQ(open_descriptors(), before + 1);
}

/// Whether the worker says good-bye to a peer of this host, whatever it says before.
bool is_sent_away(const PacketSocket& peer) {
  for (;;) {
    const Packet packet = next_packet(peer);
    if (packet.result != PacketResult::done) return false;
    if (packet.words.say == Say::bye) return true;
  }
}

/// Says up to `most` words; whether it is sent away for them.
bool is_sent_away_for(const PacketSocket& peer, std::int64_t most, auto words_of,
                      std::span<const std::byte> data = {}, int descriptor = -1) {
  for (std::int64_t said = 0; said < most; ++said) {
    PacketResult result = PacketResult::later;
    while (result == PacketResult::later) result = peer.send(words_of(said), data, descriptor);
    if (result == PacketResult::ended) return is_sent_away(peer);
    while (peer.has_news()) {
      if (next_packet(peer).words.say == Say::bye) return true;
    }
  }
  return false;
}

struct LocalGuest {
  Alone alone;
  PacketSocket peer = PacketSocket::connect(alone.name);

  LocalGuest() {
    introduce(peer, 1, kGuestToken);
    EXPECT_EQ(next_packet(peer).words.say, Say::welcome);
  }
};

TEST(Strangers, APeerThatOffersWithoutEndIsSentAway) {
  const LocalGuest guest;
  const Bytes data(8000);
  const auto offer = [&](std::int64_t step) {
    return Words{.say = Say::offer,
                 .tag = {.step = step},
                 .number = static_cast<std::uint64_t>(step),
                 .bytes = data.size()};
  };
  EXPECT_TRUE(is_sent_away_for(guest.peer, 20'000, offer, data));
  Bytes landing(8);
  Transport& worker = *guest.alone.transport;
  const auto failure = finish_failed(worker, worker.receive(1, {.step = -1}, landing, patience()));
  EXPECT_NE(failure.reason.find("says more than"), std::string::npos) << failure.reason;
}

TEST(Strangers, AnOfferTakesNoMoreRoomThanItHasBytes) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need room of their own";
#endif
  const LocalGuest guest;
  const auto resident_mib = [] {
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages >> pages;
    return static_cast<double>(pages) * static_cast<double>(::getpagesize()) / 1048576;
  };
  const Bytes data(1);
  const double before = resident_mib();
  constexpr std::int64_t kMany = 30'000;
  const auto offer = [&](std::int64_t step) {
    return Words{.say = Say::offer,
                 .tag = {.step = step},
                 .number = static_cast<std::uint64_t>(step),
                 .bytes = data.size()};
  };
  EXPECT_FALSE(is_sent_away_for(guest.peer, kMany, offer, data));
  // What is said last is answered last.
  guest.peer.send({.say = Say::withdraw, .number = 1}, {}, -1);
  while (next_packet(guest.peer).words.say == Say::alive) continue;
  EXPECT_LT(resident_mib() - before, 100);  // 470 where each keeps the room of a whole packet
}

TEST(Strangers, APeerThatGivesManyOffersOneNumberIsSentAway) {
  const LocalGuest guest;
  const auto offer = [](std::int64_t step) {
    return Words{.say = Say::offer, .tag = {.step = step}, .number = 1};
  };
  EXPECT_TRUE(is_sent_away_for(guest.peer, 100'000, offer));
}

/// Each mapping is one of those that the system lets a process have.
TEST(Strangers, APeerThatGivesMemoriesWithoutEndIsSentAway) {
  const LocalGuest guest;
  const SharedMemory memory(4096);
  const auto give = [](std::int64_t count) {
    return Words{.say = Say::memory, .number = static_cast<std::uint64_t>(count), .bytes = 8};
  };
  EXPECT_TRUE(is_sent_away_for(guest.peer, 20'000, give, {}, memory.descriptor()));
}

TEST(Strangers, AMemoryInWhichSomethingIsOfferedCannotBeForgotten) {
  const LocalGuest guest;
  const SharedMemory memory(4096);
  guest.peer.send({.say = Say::memory, .number = 1, .bytes = 8}, {}, memory.descriptor());
  guest.peer.send({.say = Say::offer, .number = 1, .bytes = 8, .memory = 1}, {}, -1);
  guest.peer.send({.say = Say::forget, .number = 1}, {}, -1);
  EXPECT_TRUE(is_sent_away(guest.peer));
}

TEST(Strangers, APeerThatWaitsForManyThingsUnderOneNumberIsSentAway) {
  const Alone alone({.share_memory = false});
  Guest peer(alone.port);
  peer.introduce(1, kGuestToken);
  ASSERT_TRUE(peer.is_welcome());
  for (std::int64_t step = 0; step < 2; ++step) {
    peer.say({.say = Say::ready, .tag = {.step = step}, .number = 1, .bytes = 8});
  }
  EXPECT_TRUE(peer.is_sent_away());
}

/// The first send would end with the second's payload, while its own is still read.
TEST(Strangers, NoTwoPayloadsLeaveUnderOneNumber) {
  const StreamDoor door = listen_for_streams(kGuestHost);
  const Alone alone({.share_memory = false}, door.address.port);
  const Bytes large(16 << 20);
  const Request sent = alone.transport->send(1, {.step = 0}, large, patience());
  const Request other = alone.transport->send(1, {.step = 1}, Bytes(8), patience());
  Guest peer(alone.port);
  peer.introduce(1, kGuestToken);
  ASSERT_TRUE(peer.is_welcome());
  peer.say({.say = Say::ready, .tag = {.step = 0}, .number = 1, .bytes = large.size()});
  peer.say({.say = Say::ready, .tag = {.step = 1}, .number = 1, .bytes = 8});
  for (const Request request : {sent, other}) {
    const auto failure = finish_failed(*alone.transport, request);
    EXPECT_NE(failure.reason.find("a number that it still uses"), std::string::npos)
        << failure.reason;
  }
}

/// See Note [Said in vain].
TEST(Strangers, APeerThatSaysMuchInVainIsHeardNowAndThen) {
  const LocalGuest guest;
  const auto pair = [](std::int64_t count) {
    return Words{.say = count % 2 == 0 ? Say::offer : Say::withdraw,
                 .tag = {.step = count},
                 .number = static_cast<std::uint64_t>(count / 2)};
  };
  constexpr std::int64_t kMany = 90'000;
  const auto begin = Clock::now();
  EXPECT_FALSE(is_sent_away_for(guest.peer, kMany, pair));
  // Two beats at least, for what is more than a peer may say at once.
  EXPECT_GT(Clock::now() - begin, std::chrono::milliseconds(900));
}

TEST(Strangers, APeerThatWaitsForEverythingIsSentAway) {
  const Alone alone({.share_memory = false});
  Guest peer(alone.port);
  peer.introduce(1, kGuestToken);
  ASSERT_TRUE(peer.is_welcome());
  for (std::int64_t step = 0; step < 70'000; ++step) {
    peer.say({.say = Say::ready,
              .tag = {.step = step},
              .number = static_cast<std::uint64_t>(step),
              .bytes = 8});
  }
  EXPECT_TRUE(peer.is_sent_away());
}

TEST(Strangers, AWorkerOfAnotherVersionIsToldSo) {
  const std::string name = name_for("version");
  const Misled misled(PacketSocket::listen(name), name);
  Bytes landing(8);
  const Request received = misled.transport->receive(1, {}, landing, patience());
  const PacketSocket visitor = misled.visitor();
  Greeting asked = challenge(random_nonce());
  asked.words.offset = kWireVersion + 1;
  visitor.send(asked.words, asked.text, -1);
  const auto failure = finish_failed(*misled.transport, received);
  EXPECT_NE(failure.reason.find("the same gossamer"), std::string::npos) << failure.reason;
}

}  // namespace
}  // namespace gossamer
