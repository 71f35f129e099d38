// Whole transports over TLS, and clients without it or with something else.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <thread>

#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/net_team.h"
#include "gossamer/transport/net/test_client.h"

namespace gossamer {
namespace {

using conformance::Bytes;
using conformance::finish;
using conformance::finish_failed;
using conformance::in_ms;
using conformance::patience;
using conformance::pattern;
using conformance::same;

const NetOptions kOverTls{.share_memory = false, .tls = true};

std::shared_ptr<const TlsKeys> keys(const std::string& token = kTestToken) {
  return std::make_shared<const TlsKeys>(token);
}

/// A connection over which the test sends bytes of its own.
class RawClient {
 public:
  explicit RawClient(int port) : socket_(connect_stream({kTestHost, port})) {
    pollfd entry{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    EXPECT_EQ(::poll(&entry, 1, 20'000), 1);
  }

  bool send(std::span<const std::byte> bytes) const {
    return ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes);
  }
  void end_its_side() const { ::shutdown(socket_.get(), SHUT_WR); }
  bool is_hung_up() const {
    Bytes part(4096);
    for (const Deadline limit = in_ms(20'000); Clock::now() < limit;) {
      const ssize_t got = ::recv(socket_.get(), part.data(), part.size(), 0);
      if (got == 0 || (got < 0 && errno != EAGAIN)) return true;
      pollfd entry{.fd = socket_.get(), .events = POLLIN, .revents = 0};
      ::poll(&entry, 1, 100);
    }
    return false;
  }

 private:
  Descriptor socket_;
};

/// The first bytes of an end that connects.
Bytes first_bytes() {
  std::array<int, 2> ends = {};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  Stream stream(Descriptor(ends[0]), keys(), Tls::End::connects);
  const Descriptor other(ends[1]);
  stream.write();
  Bytes sent(4096);
  sent.resize(static_cast<std::size_t>(
      std::max<ssize_t>(0, ::recv(other.get(), sent.data(), sent.size(), 0))));
  EXPECT_GT(sent.size(), 100U);
  return sent;
}

TEST(NetTls, LetsInWorkersWithTheTokenAndNobodyElse) {
  const LoneWorker lone(kOverTls);
  for (const char* token : {"open sesamf", "open sesame2"}) {
    TestClient client(lone.port, keys(token));
    client.send_hello(1, token);
    EXPECT_TRUE(client.is_hung_up()) << token;
  }
  for (const std::uint64_t rank : {0UL, 2UL, ~0UL}) {  // the key alone does not say who it is
    TestClient client(lone.port, keys());
    client.send_hello(rank, kTestToken);
    EXPECT_TRUE(client.is_hung_up()) << rank;
  }
  TestClient liar(lone.port, keys());
  liar.send_hello(1, "open sesamf");
  EXPECT_TRUE(liar.is_hung_up());
  TestClient worker(lone.port, keys());
  worker.send_hello(1, kTestToken);
  EXPECT_TRUE(worker.is_welcome());
  TestClient second(lone.port, keys());
  second.send_hello(1, kTestToken);
  EXPECT_TRUE(second.is_hung_up());
  EXPECT_FALSE(worker.has_ended());
}

TEST(NetTls, HangsUpOnOtherProtocolsAndServesTheOthers) {
  const LoneWorker lone(kOverTls);
  const Bytes good = first_bytes();
  Bytes changed = good;
  changed[60] ^= std::byte{1};
  Bytes long_record = good;
  long_record[3] = std::byte{0xff};  // a record of 64 KB
  std::vector<Bytes> all = {Bytes(64, std::byte{'x'}), pattern(5000, 1), changed, long_record};
  for (const std::string text : {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n"}) {
    const auto bytes = bytes_of(text);
    all.emplace_back(bytes.begin(), bytes.end());
  }
  for (const Bytes& bytes : all) {
    const RawClient client(lone.port);
    EXPECT_TRUE(client.send(bytes));
    EXPECT_TRUE(client.is_hung_up());
  }
  TestClient plain(lone.port);
  plain.send({.type = FrameType::hello, .number = 1}, Bytes(64));
  EXPECT_TRUE(plain.is_hung_up());
  TestClient worker(lone.port, keys());
  worker.send_hello(1, kTestToken);
  EXPECT_TRUE(worker.is_welcome());
}

/// They wait all at once, and the worker that comes meanwhile does not wait for them.
TEST(NetTls, HangsUpOnClientsThatAreSlowOrStopHalfWay) {
  const LoneWorker lone(kOverTls);
  const Bytes good = first_bytes();
  const RawClient silent(lone.port);
  const RawClient half(lone.port);
  half.send(std::span(good).first(good.size() / 2));
  const RawClient whole(lone.port);  // that never answers
  whole.send(good);
  const RawClient leaver(lone.port);
  leaver.send(std::span(good).first(good.size() / 2));
  leaver.end_its_side();
  const RawClient slow(lone.port);
  const std::jthread drip([&](const std::stop_token& stop) {
    for (std::size_t at = 0; at < good.size() && !stop.stop_requested(); ++at) {
      if (!slow.send(std::span(good).subspan(at, 1))) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  TestClient worker(lone.port, keys());
  worker.send_hello(1, kTestToken);
  EXPECT_TRUE(worker.is_welcome());
  EXPECT_TRUE(leaver.is_hung_up());
  EXPECT_TRUE(silent.is_hung_up());
  EXPECT_TRUE(half.is_hung_up());
  EXPECT_TRUE(whole.is_hung_up());
  EXPECT_TRUE(slow.is_hung_up());
  EXPECT_FALSE(worker.has_ended());
}

/// Worker `rank` of two, whose peer has this endpoint.
NetOptions beside(int rank, const std::string& endpoint) {
  NetOptions options{.rank = rank, .workers = 2, .token = kTestToken};
  options.share = [rank, endpoint](const std::string& mine) {
    return rank == 0 ? std::vector{mine, endpoint} : std::vector{endpoint, mine};
  };
  options.address = kTestHost;
  options.share_memory = false;
  return options;
}

TEST(NetTls, WorkersOfWhichOnlySomeHaveItAreNamed) {
  for (const bool has_tls : {true, false}) {
    for (const int rank : {0, 1}) {
      NetOptions options =
          beside(rank, std::string("- other 0 127.0.0.1 1") + (has_tls ? "" : " tls"));
      options.tls = has_tls;
      try {
        make_net_transport(options);
        ADD_FAILURE() << "nobody minds";
      } catch (const std::invalid_argument& error) {
        const int with = has_tls ? rank : 1 - rank;
        const std::string expected = "tls on worker " + std::to_string(with) + ", none on worker " +
                                     std::to_string(1 - with);
        EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
      }
    }
  }
}

/// Whatever the endpoint promises: the worker exchanges nothing without TLS.
TEST(NetTls, APeerThatAnswersWithoutItFailsTheRequestSoon) {
  const StreamListener listener = listen_for_streams(kTestHost);
  NetOptions options =
      beside(0, "- other 0 127.0.0.1 " + std::to_string(listener.address.port) + " tls");
  options.tls = true;
  const auto transport = make_net_transport(options);
  Bytes landing(8);
  const Request received = transport->receive(1, {}, landing, patience());
  pollfd knock{.fd = listener.socket.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&knock, 1, 20'000), 1);
  Stream plain(accept_stream(listener.socket));
  const HandshakeFrame frame = make_challenge(random_nonce());
  plain.send(frame.header, frame.text);
  plain.write();
  const auto failure = finish_failed(*transport, received);
  EXPECT_EQ(failure.peer, 1);
  EXPECT_LT(failure.elapsed_s, 20);
  EXPECT_NE(failure.reason.find("give tls"), std::string::npos) << failure.reason;
}

TEST(NetTls, NeedsAToken) {
  NetOptions options = beside(0, "- other 0 127.0.0.1 1 tls");
  options.token = "";
  options.tls = true;
  EXPECT_THROW(make_net_transport(options), std::invalid_argument);
}

/// Both ends send large and small payloads, with threads that wait and threads that do not.
TEST(NetTls, ManyThreadsExchangeLargeAndSmall) {
  constexpr int kThreads = 3;
  constexpr int kSteps = 20;
  const auto team = make_net_team(2, {.address = kTestHost, .share_memory = false, .tls = true});
  const auto work = [&](int rank, int stream) {
    Transport& own = *team[static_cast<std::size_t>(rank)];
    for (int step = 0; step < kSteps; ++step) {
      const std::size_t size = stream == 0 ? 8 : (1UL << 20) * static_cast<std::size_t>(stream) + 7;
      const auto seed = static_cast<std::uint64_t>(step * kThreads + stream);
      const Tag tag{.step = step, .stream = stream};
      const Bytes payload = pattern(size, 2 * seed + static_cast<std::uint64_t>(rank));
      Bytes landing(size);
      const Request received = own.receive(1 - rank, tag, landing, patience());
      const Request sent = own.send(1 - rank, tag, payload, patience());
      const Bytes expected = pattern(size, 2 * seed + static_cast<std::uint64_t>(1 - rank));
      EXPECT_TRUE(same(finish(own, received), expected)) << step << ", " << stream;
      finish(own, sent);
    }
  };
  std::vector<std::jthread> threads;
  for (int rank : {0, 1}) {
    for (int stream = 0; stream < kThreads; ++stream) threads.emplace_back(work, rank, stream);
  }
}

}  // namespace
}  // namespace gossamer
