#pragma once
/// For tests: a worker whose only peer is whatever connects, and a client that does.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/handshake.h"
#include "gossamer/transport/net/net_transport.h"
#include "gossamer/transport/net/stream.h"
#include "gossamer/transport/net/stream_socket.h"

namespace gossamer {

inline constexpr const char* kTestToken = "open sesame";
inline constexpr const char* kTestHost = "127.0.0.1";

/// Worker 0 of two, and where it listens; worker 1 is a client of the test.
struct LoneWorker {
  std::unique_ptr<Transport> transport;
  std::string name;
  int port = 0;

  explicit LoneWorker(NetOptions options = {}, int peers_port = 1) {
    options.workers = 2;
    options.token = kTestToken;
    options.address = kTestHost;
    options.share = [&](const std::string& mine) {
      std::istringstream fields(mine);
      std::string reach;
      std::string generation;
      std::string host;
      fields >> reach >> name >> generation >> host >> port;
      const std::string nobody =
          reach + " gossamer-nobody 0 " + kTestHost + " " + std::to_string(peers_port);
      return std::vector<std::string>{mine, nobody + (options.tls ? " tls" : "")};
    };
    transport = make_net_transport(options);
  }
};

/// The handshake of a client that says it is worker `rank` with worker 0.
inline Handshake handshake_with(std::uint64_t rank, const Nonce& nonce) {
  return {.initiator = {.rank = rank},
          .responder = 0,
          .responder_nonce = nonce,
          .initiator_nonce = random_nonce()};
}

/// Connects to a worker over TCP and sends the frames that the test wants.
class TestClient {
 public:
  explicit TestClient(int port, const std::shared_ptr<const TlsKeys>& keys = nullptr)
      : stream_(connect_stream({kTestHost, port}), keys, Tls::End::connects) {}

  /// The nonce of the challenge.
  Nonce receive_challenge() {
    wait([&] { return nonce_.has_value(); });
    return nonce_.value_or(Nonce{});
  }
  void send_hello(std::uint64_t rank, const std::string& token) {
    const Handshake handshake = handshake_with(rank, receive_challenge());
    const HandshakeFrame frame = make_hello(token, handshake);
    send(frame.header, frame.text);
    const SessionKeys keys = session_keys(token, handshake);
    stream_.authenticate(keys.initiator, keys.responder, false);
  }
  void send(const FrameHeader& header, std::span<const std::byte> text = {}) {
    stream_.send(header, text);
    stream_.write();
  }
  bool is_hung_up() {
    return wait([&] { return stream_.has_ended(); });
  }
  bool is_welcome() {
    return wait([&] { return welcome_; });
  }
  /// Whether the worker sends `bye`.
  bool gets_bye() {
    return wait([&] { return bye_; });
  }
  bool has_ended() const { return stream_.has_ended(); }
  int descriptor() const { return stream_.descriptor(); }
  /// Goes without a farewell: whoever writes to it is told of a reset.
  void vanish() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    stream_.reset();
  }

 private:
  template <class Condition>
  bool wait(const Condition& condition) {
    const Deadline limit = conformance::in_ms(20'000);
    while (!condition() && !stream_.has_ended() && Clock::now() < limit) {
      const int events = POLLIN | (stream_.is_behind() ? POLLOUT : 0);
      pollfd entry{.fd = descriptor(), .events = static_cast<short>(events), .revents = 0};
      ::poll(&entry, 1, 100);
      stream_.write();
      stream_.read({.frame =
                        [&](const FrameHeader& header, std::span<const std::byte> text) {
                          if (const auto nonce = read_challenge(header, text)) nonce_ = nonce;
                          welcome_ = welcome_ || header.type == FrameType::welcome;
                          bye_ = bye_ || header.type == FrameType::bye;
                        },
                    .landing = [](const FrameHeader&) { return std::span<std::byte>(); },
                    .landed = [](const FrameHeader&) {}});
      stream_.write();
    }
    return condition();
  }

  Stream stream_;
  std::optional<Nonce> nonce_;
  bool welcome_ = false;
  bool bye_ = false;
};

}  // namespace gossamer
