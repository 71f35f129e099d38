#include "gossamer/transport/net/stream.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstring>
#include <optional>
#include <thread>

#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/crc32c.h"
#include "gossamer/transport/net/net_team.h"
#include "gossamer/transport/net/stream_socket.h"

namespace gossamer {
namespace stream_test {

using conformance::Bytes;
using conformance::finish;
using conformance::finish_failed;
using conformance::patience;
using conformance::pattern;

constexpr const char* kLoopback = "127.0.0.1";

constexpr FrameKey kKey = {std::byte{7}};
constexpr std::size_t kHeaderBytes = 96;

struct SocketPair {
  Descriptor first;
  Descriptor second;
};

SocketPair make_sockets() {
  std::array<int, 2> ends = {};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// All that a stream writes when it sends `alive` and the payload.
Bytes written(std::span<const std::byte> payload, bool authenticates = true) {
  SocketPair sockets = make_sockets();
  Stream stream(std::move(sockets.first));
  stream.authenticate(kKey, kKey, authenticates);
  stream.send({.type = FrameType::alive});
  stream.start(7, payload);
  Bytes all;
  Bytes part(1 << 16);
  while (stream.is_behind()) {
    stream.write();
    for (;;) {
      const ssize_t got = ::recv(sockets.second.get(), part.data(), part.size(), 0);
      if (got <= 0) break;
      all.insert(all.end(), part.begin(), part.begin() + got);
    }
  }
  return all;
}

struct Received {
  Bytes landing;
  std::size_t landed = 0;
  int frames = 0;
  bool has_ended = false;
  bool is_corrupt = false;
};

/// What a stream makes of these bytes, in portions of this size.
Received receive(std::span<const std::byte> bytes, std::size_t size, std::size_t portion,
                 bool authenticates = true) {
  SocketPair sockets = make_sockets();
  Stream stream(std::move(sockets.first));
  stream.authenticate(kKey, kKey, authenticates);
  Received received{.landing = Bytes(size)};
  const StreamHandlers handlers{
      .frame = [&](const FrameHeader&, std::span<const std::byte>) { ++received.frames; },
      .landing =
          [&](const FrameHeader& header) {
            return std::span(received.landing).subspan(header.offset, header.follows);
          },
      .landed = [&](const FrameHeader& header) { received.landed += header.follows; }};
  while (!bytes.empty() && !stream.has_ended()) {
    const ssize_t sent = ::send(sockets.second.get(), bytes.data(), std::min(portion, bytes.size()),
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
    stream.read(handlers);
  }
  stream.read(handlers);
  received.has_ended = stream.has_ended();
  received.is_corrupt = stream.is_corrupt();
  return received;
}

TEST(Stream, BringsWhatWasSentInPortionsOfAnySize) {
  const Bytes payload = pattern((1 << 20) + 12345, 1);
  const Bytes all = written(payload);
  for (const std::size_t portion : {777UL, 4096UL, 1UL << 20}) {
    const Received received = receive(all, payload.size(), portion);
    EXPECT_EQ(received.landing, payload) << portion;
    EXPECT_EQ(received.landed, payload.size());
    EXPECT_EQ(received.frames, 1);
    EXPECT_FALSE(received.has_ended);
  }
}

TEST(Stream, EndsAtABitThatChangedWhereverItIs) {
  const Bytes payload = pattern(3000, 2);
  for (const bool authenticates : {true, false}) {
    const Bytes good = written(payload, authenticates);
    ASSERT_EQ(good.size(), 2 * kHeaderBytes + payload.size());
    for (std::size_t at = 0; at < good.size(); at += at < 2 * kHeaderBytes ? 1 : 97) {
      Bytes bad = good;
      bad[at] ^= std::byte{4};
      const Received received = receive(bad, payload.size(), 500, authenticates);
      EXPECT_TRUE(received.has_ended && received.is_corrupt) << at;
      EXPECT_EQ(received.landed, 0U) << at;
      EXPECT_EQ(received.frames, at < kHeaderBytes ? 0 : 1) << at;
    }
  }
}

/// A relay that knows how checksums are made can change a payload under one, and nothing else.
TEST(Stream, AChecksumThatWasMendedIsFoundToo) {
  const Bytes payload = pattern(3000, 2);
  for (const bool authenticates : {true, false}) {
    Bytes bad = written(payload, authenticates);
    const std::size_t body = 2 * kHeaderBytes;
    bad[body + 7] ^= std::byte{1};
    const std::uint32_t mended = crc32c(std::span(bad).subspan(body));
    std::memcpy(bad.data() + kHeaderBytes + sizeof(FrameHeader), &mended, sizeof(mended));
    const Received received = receive(bad, payload.size(), 500, authenticates);
    EXPECT_TRUE(received.is_corrupt);
    EXPECT_EQ(received.landed, 0U);
  }
}

/// Each frame is good for its place only.
TEST(Stream, EndsAtAFrameThatIsMissingMovedOrRepeated) {
  const Bytes payload = pattern(3000, 2);
  const Bytes good = written(payload);
  const auto cut = good.begin() + kHeaderBytes;
  const Bytes first(good.begin(), cut);
  const Bytes second(cut, good.end());
  const auto joined = [](std::initializer_list<Bytes> parts) {
    Bytes all;
    for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  for (const Bytes& bad : {joined({second}), joined({second, first}), joined({first, first})}) {
    const Received received = receive(bad, payload.size(), 500);
    EXPECT_TRUE(received.is_corrupt);
    EXPECT_EQ(received.landed, 0U);
  }
}

TEST(Stream, TakesOnlyTheHandshakeUntilItsKeysAreKnown) {
  SocketPair sockets = make_sockets();
  Stream near(std::move(sockets.first));
  Stream far(std::move(sockets.second));
  near.authenticate(kKey, kKey);
  near.send({.type = FrameType::challenge}, Bytes(32));
  near.send({.type = FrameType::bye}, Bytes(8));
  near.write();
  std::vector<FrameType> received;
  far.read({.frame = [&](const FrameHeader& header, auto) { received.push_back(header.type); },
            .landing = [](const FrameHeader&) { return std::span<std::byte>(); },
            .landed = [](const FrameHeader&) {}});
  EXPECT_EQ(received, std::vector<FrameType>{FrameType::challenge});
  EXPECT_TRUE(far.is_corrupt());
}

/// Passes bytes on between a client and a port, and changes one of the bytes that come back.
class Proxy {
 public:
  Proxy(int port, std::size_t change_at) : target_(port), change_at_(change_at) {}

  int port() const { return listener_.address.port; }

 private:
  struct Way {
    int from = -1;
    int to = -1;
    bool is_back = false;
    bool is_open = true;
  };

  void run(const std::stop_token& stop) {
    Descriptor near;
    while (!near && !stop.stop_requested()) {
      near = accept_stream(listener_.socket);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (!near) return;
    const Descriptor far = connect_stream({kLoopback, target_});
    std::array<Way, 2> ways = {
        {{near.get(), far.get(), false, true}, {far.get(), near.get(), true, true}}};
    while (!stop.stop_requested()) {
      for (Way& way : ways) pass(way);
    }
  }

  void pass(Way& way) {
    pollfd entry{.fd = way.from, .events = POLLIN, .revents = 0};
    if (!way.is_open || ::poll(&entry, 1, 1) != 1) return;
    std::array<std::byte, 1 << 16> part;
    const ssize_t got = ::recv(way.from, part.data(), part.size(), 0);
    if (got <= 0) {
      way.is_open = false;
      ::shutdown(way.to, SHUT_WR);
      return;
    }
    const auto count = static_cast<std::size_t>(got);
    if (way.is_back && change_at_ >= passed_ && change_at_ < passed_ + count) {
      part[change_at_ - passed_] ^= std::byte{1};
    }
    if (way.is_back) passed_ += count;
    for (std::size_t done = 0; done < count && way.is_open;) {
      const ssize_t sent = ::send(way.to, part.data() + done, count - done, MSG_NOSIGNAL);
      if (sent > 0) done += static_cast<std::size_t>(sent);
      if (sent < 0 && errno != EAGAIN) way.is_open = false;
    }
  }

  StreamListener listener_ = listen_for_streams(kLoopback);
  const int target_;
  const std::size_t change_at_;
  std::size_t passed_ = 0;
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }};
};

/// Two workers, of which worker 1 reaches worker 0 through a proxy.
struct Team {
  std::optional<Proxy> proxy;
  std::vector<std::unique_ptr<Transport>> workers;

  explicit Team(std::size_t change_at) : workers(2) {
    std::vector<std::string> endpoints(2);
    std::barrier all_here(2);
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        NetOptions options{.rank = static_cast<int>(rank), .workers = 2, .token = "open sesame"};
        options.address = kLoopback;
        options.share_memory = false;
        options.share = [&](const std::string& own) {
          endpoints[rank] = own;
          all_here.arrive_and_wait();
          auto seen = endpoints;
          if (rank == 1) seen[0] = through_proxy(endpoints[0], change_at);
          return seen;
        };
        workers[rank] = make_net_transport(options);
      });
    }
  }

 private:
  std::string through_proxy(const std::string& endpoint, std::size_t change_at) {
    const std::size_t port_at = endpoint.rfind(' ') + 1;
    proxy.emplace(std::stoi(endpoint.substr(port_at)), change_at);
    return endpoint.substr(0, port_at) + std::to_string(proxy->port());
  }
};

TEST(Stream, AChangedByteFailsTheReceiveAndNothingMoreIsAccepted) {
  constexpr std::size_t kChangedAt = 100'000;  // far behind the handshake
  const Bytes payload = pattern(32 << 20, 5);  // more than all the sockets on the way hold
  Team team(kChangedAt);
  Bytes landing(payload.size());
  const Request received = team.workers[1]->receive(0, {}, landing, patience());
  const Request sent = team.workers[0]->send(1, {}, payload, patience());
  const auto failure = finish_failed(*team.workers[1], received);
  EXPECT_EQ(failure.peer, 0);
  EXPECT_NE(failure.reason.find("changed on the way"), std::string::npos) << failure.reason;
  EXPECT_LT(failure.elapsed_s, 30);
  finish_failed(*team.workers[0], sent);
  const auto is_untouched = [](std::byte byte) { return byte == std::byte{0}; };
  EXPECT_TRUE(std::all_of(landing.begin() + (2 << 20), landing.end(), is_untouched));

  Bytes next(8);
  const Request after = team.workers[1]->receive(0, {.step = 1}, next, patience());
  const auto refusal = finish_failed(*team.workers[1], after);
  EXPECT_NE(refusal.reason.find("changed on the way"), std::string::npos) << refusal.reason;
}

TEST(Stream, WithoutAChangeTheSameWayBringsThePayload) {
  const Bytes payload = pattern(1 << 20, 6);
  Team team(~std::size_t{0});
  Bytes landing(payload.size());
  const Request received = team.workers[1]->receive(0, {}, landing, patience());
  const Request sent = team.workers[0]->send(1, {}, payload, patience());
  EXPECT_EQ(finish(*team.workers[1], received), payload);
  finish(*team.workers[0], sent);
}

/// Threads of one worker that wait at the same time: one handles the events, the others are woken.
TEST(Stream, EveryThreadThatWaitsIsToldOfItsOwn) {
  constexpr int kThreads = 4;
  constexpr int kSteps = 50;
  const auto team = make_net_team(2, {.address = kLoopback, .share_memory = false});
  const auto work = [&](int rank, int stream) {
    Transport& own = *team[static_cast<std::size_t>(rank)];
    for (int step = 0; step < kSteps; ++step) {
      const std::size_t size = 1UL << (3 * (stream + 2));
      const auto seed = static_cast<std::uint64_t>(step * kThreads + stream);
      const Tag tag{.step = step, .stream = stream};
      const Bytes payload = pattern(size, 2 * seed + static_cast<std::uint64_t>(rank));
      Bytes landing(size);
      const Request received = own.receive(1 - rank, tag, landing, patience());
      const Request sent = own.send(1 - rank, tag, payload, patience());
      EXPECT_EQ(finish(own, received),
                pattern(size, 2 * seed + static_cast<std::uint64_t>(1 - rank)));
      finish(own, sent);
    }
  };
  std::vector<std::jthread> threads;
  for (int rank : {0, 1}) {
    for (int stream = 0; stream < kThreads; ++stream) threads.emplace_back(work, rank, stream);
  }
}

}  // namespace stream_test
}  // namespace gossamer
