#include "gossamer/transport/net/tls.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string_view>

#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/stream.h"
#include "gossamer/transport/net/stream_socket.h"

namespace gossamer {
namespace tls_test {

using conformance::Bytes;
using conformance::patience;
using conformance::pattern;
using conformance::same;

constexpr const char* kToken = "open sesame";
using Keys = std::shared_ptr<const TlsKeys>;

Keys keys(const std::string& token = kToken) { return std::make_shared<const TlsKeys>(token); }

std::array<Descriptor, 2> make_sockets() {
  std::array<int, 2> ends = {};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// What has come out of both ends.
struct Received {
  Bytes landing;
  std::size_t landed = 0;
  int frames = 0;

  StreamHandlers handlers() {
    return {.frame = [this](const FrameHeader&, std::span<const std::byte>) { ++frames; },
            .landing =
                [this](const FrameHeader& each) {
                  return std::span(landing).subspan(each.offset, each.follows);
                },
            .landed = [this](const FrameHeader& each) { landed += each.follows; }};
  }
};

/// Two streams and the wire between them, which is watched. Keys: over TLS.
struct WatchedLink {
  std::array<std::array<Descriptor, 2>, 2> sockets = {make_sockets(), make_sockets()};
  Stream near;
  Stream far;
  Received received;
  Bytes passed = {};               ///< both ways
  std::array<Bytes, 2> kept = {};  ///< on its way, by where it is from
  std::size_t change_at = ~std::size_t{0};
  std::size_t portion = 1 << 16;

  WatchedLink(const Keys& here, const Keys& there)
      : near(std::move(sockets[0][0]), here, Tls::End::connects),
        far(std::move(sockets[1][0]), there, Tls::End::accepts) {
    for (Stream* stream : {&near, &far}) stream->authenticate({}, {});
  }

  /// Until nothing moves any more.
  void settle() {
    for (int still = 0; still < 4; ++still) {
      for (Stream* stream : {&near, &far}) {
        stream->write();
        if (relay(0)) still = 0;
        if (relay(1)) still = 0;
        stream->read(received.handlers());
      }
    }
  }

 private:
  bool relay(std::size_t from) {
    Bytes& part = kept[from];
    if (part.empty()) {
      part.resize(portion);
      const ssize_t got = ::recv(sockets[from][1].get(), part.data(), part.size(), 0);
      part.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
      if (change_at >= passed.size() && change_at < passed.size() + part.size()) {
        part[change_at - passed.size()] ^= std::byte{1};
      }
      passed.insert(passed.end(), part.begin(), part.end());
    }
    if (part.empty()) return false;
    const ssize_t sent = ::send(sockets[1 - from][1].get(), part.data(), part.size(), MSG_NOSIGNAL);
    if (sent > 0) part.erase(part.begin(), part.begin() + sent);
    return sent > 0;
  }
};

/// The payload goes from near to far.
void send(WatchedLink& wire, const Bytes& payload) {
  wire.received.landing.assign(payload.size(), std::byte{0});
  wire.received.landed = 0;
  wire.near.start(7, payload);
  wire.settle();
}

bool holds(const Bytes& all, std::string_view text) {
  const auto part = std::as_bytes(std::span(text));
  return std::search(all.begin(), all.end(), part.begin(), part.end()) != all.end();
}

TEST(Tls, TheWireShowsNothingOfWhatIsSent) {
  const std::string_view secret = "the rain in Spain stays mainly in the plain";
  Bytes payload(100'000);
  for (std::size_t at = 0; at + secret.size() < payload.size(); at += 1000) {
    std::memcpy(payload.data() + at, secret.data(), secret.size());
  }
  for (const bool is_plain : {true, false}) {
    WatchedLink wire(is_plain ? nullptr : keys(), is_plain ? nullptr : keys());
    wire.near.send({.type = FrameType::bye}, bytes_of(std::string(secret)));
    send(wire, payload);
    EXPECT_EQ(wire.received.landing, payload);
    EXPECT_EQ(wire.received.frames, 1);
    EXPECT_GT(wire.passed.size(), payload.size());
    EXPECT_EQ(holds(wire.passed, secret), is_plain);
    EXPECT_EQ(holds(wire.passed, "ssog"), is_plain);  // how all headers begin
    EXPECT_FALSE(holds(wire.passed, kToken));
  }
}

TEST(Tls, BringsWhatWasSentInPortionsOfAnySize) {
  const Bytes payload = pattern((1 << 20) + 12345, 1);
  for (const std::size_t portion : {777UL, 4096UL, 1UL << 18}) {
    WatchedLink wire(keys(), keys());
    wire.portion = portion;
    wire.far.send({.type = FrameType::challenge}, pattern(32, 2));
    send(wire, payload);
    EXPECT_TRUE(same(wire.received.landing, payload)) << portion;
    EXPECT_EQ(wire.received.landed, payload.size());
    EXPECT_EQ(wire.received.frames, 1);
    EXPECT_FALSE(wire.near.is_behind() || wire.far.is_behind());
    EXPECT_FALSE(wire.near.has_ended() || wire.far.has_ended());
  }
}

TEST(Tls, WhoeverHasAnotherTokenIsRefusedByBothEnds) {
  for (const char* token : {"open sesamf", "open sesame2", "x"}) {
    WatchedLink wire(keys(), keys(token));
    wire.near.send({.type = FrameType::alive});
    wire.far.send({.type = FrameType::alive});
    wire.settle();
    EXPECT_TRUE(wire.near.has_ended() && wire.far.has_ended()) << token;
    EXPECT_NE(wire.near.tls_failure(), "");
    EXPECT_NE(wire.far.tls_failure(), "");
    EXPECT_EQ(wire.received.frames, 0);
  }
}

TEST(Tls, APlainEndIsRefusedWhicheverItIs) {
  for (const bool is_near : {true, false}) {
    WatchedLink wire(is_near ? nullptr : keys(), is_near ? keys() : nullptr);
    for (Stream* stream : {&wire.near, &wire.far}) stream->send({.type = FrameType::alive});
    wire.settle();
    const Stream& tls = is_near ? wire.far : wire.near;
    EXPECT_TRUE(tls.has_ended());
    EXPECT_NE(tls.tls_failure(), "");
    EXPECT_EQ(wire.received.frames, 0);
  }
}

TEST(Tls, ATokenIsNeeded) { EXPECT_THROW(TlsKeys(""), std::invalid_argument); }

TEST(Tls, GoesOnWithNewKeys) {
  std::array<std::size_t, 2> passed = {};
  for (const bool is_often : {true, false}) {
    WatchedLink wire(is_often ? std::make_shared<const TlsKeys>(kToken, 50'000) : keys(), keys());
    for (std::uint64_t i = 0; i < 5; ++i) {
      const Bytes payload = pattern(300'000, i);
      send(wire, payload);
      EXPECT_TRUE(same(wire.received.landing, payload)) << i;
    }
    passed[is_often ? 1 : 0] = wire.passed.size();
  }
  EXPECT_GT(passed[1], passed[0]);  // by what says so
}

TEST(Tls, AChangedByteEndsTheStreamWhereverItIs) {
  const Bytes payload = pattern(100'000, 3);
  std::size_t begin = 0;
  std::size_t end = 0;
  {
    WatchedLink wire(keys(), keys());
    wire.settle();
    begin = wire.passed.size();  // the handshake is over
    send(wire, payload);
    end = wire.passed.size();
  }
  for (std::size_t at = begin; at < end; at += at < begin + 32 ? 1 : 997) {
    WatchedLink wire(keys(), keys());
    wire.settle();
    wire.change_at = at;
    send(wire, payload);
    // A record that says to be longer than it is waits for more.
    if (wire.far.has_ended()) {
      EXPECT_TRUE(wire.far.is_corrupt()) << at;
      EXPECT_NE(wire.near.tls_failure(), "") << at;  // it has been told
    }
    EXPECT_EQ(wire.received.landed, 0U) << at;
  }
}

TEST(Tls, AnEndHalfWayThroughTheHandshakeIsNoFailureOfTls) {
  WatchedLink wire(keys(), keys());
  wire.near.write();
  ::shutdown(wire.sockets[0][1].get(), SHUT_RDWR);
  wire.settle();
  EXPECT_TRUE(wire.near.has_ended());
  EXPECT_EQ(wire.near.tls_failure(), "");
}

/// Two streams over TCP that read and write when the system says so.
struct Told {
  StreamListener listener = listen_for_streams("127.0.0.1");
  Stream near{connect_stream(listener.address), keys(), Tls::End::connects};
  Stream far = accepted();
  Received received;

  /// Whether there was an event in time.
  bool turn(int limit_ms, bool far_reads) {
    std::array<pollfd, 2> entries = {};
    for (std::size_t i : {0UL, 1UL}) {
      const Stream& stream = i == 0 ? near : far;
      const int reads = i == 0 || far_reads ? POLLIN : 0;
      const int events = reads | (stream.is_behind() ? POLLOUT : 0);
      entries[i] = {.fd = stream.descriptor(), .events = static_cast<short>(events), .revents = 0};
    }
    if (::poll(entries.data(), 2, limit_ms) <= 0) return false;
    for (std::size_t i : {0UL, 1UL}) {
      Stream& stream = i == 0 ? near : far;
      if (entries[i].revents == 0) continue;
      stream.write();
      stream.read(received.handlers());
      stream.write();
    }
    return !near.has_ended() && !far.has_ended();
  }

 private:
  Stream accepted() const {
    pollfd knock{.fd = listener.socket.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&knock, 1, 20'000), 1);
    return Stream(accept_stream(listener.socket), keys(), Tls::End::accepts);
  }
};

/// What TLS has taken from the socket and not given on yet would never be announced again: the last
/// sizes end just behind what two reads take.
TEST(Tls, WhoeverReadsWhenTheSystemSaysSoGetsEverything) {
  Told told;
  std::vector<std::size_t> sizes = {20UL << 20};
  for (std::size_t above = 0; above < 16; above += 2) sizes.push_back((1024 + above) << 10);
  for (const std::size_t size : sizes) {
    const Bytes payload = pattern(size, 4);
    told.received.landing.assign(size, std::byte{0});
    told.received.landed = 0;
    told.near.start(7, payload);
    while (told.near.is_behind() && told.turn(100, false)) {
    }  // as much as the system takes is there before the other end looks
    while (told.received.landed < size) {
      ASSERT_TRUE(told.turn(20'000, true))
          << told.received.landed << " of " << size << " are there";
    }
    EXPECT_TRUE(same(told.received.landing, payload)) << size;
  }
}

/// An end of TLS 1.3 with a certificate of its own and without the key.
struct Impostor {
  SSL_CTX* context = ::SSL_CTX_new(::TLS_server_method());
  EVP_PKEY* key = ::EVP_EC_gen("P-256");
  X509* certificate = ::X509_new();
  SSL* tls = nullptr;

  explicit Impostor(int socket) {
    ::X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    ::X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    ::X509_set_pubkey(certificate, key);
    ::X509_sign(certificate, key, ::EVP_sha256());
    EXPECT_EQ(::SSL_CTX_use_certificate(context, certificate), 1);
    EXPECT_EQ(::SSL_CTX_use_PrivateKey(context, key), 1);
    tls = ::SSL_new(context);
    ::SSL_set_fd(tls, socket);
  }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;
  ~Impostor() {
    ::SSL_free(tls);
    ::X509_free(certificate);
    ::EVP_PKEY_free(key);
    ::SSL_CTX_free(context);
  }
};

TEST(Tls, ACertificateDoesNotReplaceTheKey) {
  auto [near, far] = make_sockets();
  Stream stream(std::move(near), keys(), Tls::End::connects);
  Impostor impostor(far.get());
  stream.send({.type = FrameType::alive});
  Received received;
  for (int i = 0; i < 10 && !stream.has_ended(); ++i) {
    stream.write();
    EXPECT_NE(::SSL_accept(impostor.tls), 1);
    stream.read(received.handlers());
  }
  EXPECT_TRUE(stream.has_ended());
  EXPECT_NE(stream.tls_failure(), "");
}

}  // namespace tls_test
}  // namespace gossamer
