#pragma once
/// For tests: a worker whose only peer is whoever connects, and somebody who does.

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

inline constexpr const char* kGuestToken = "open sesame";
inline constexpr const char* kGuestHost = "127.0.0.1";

/// Worker 0 of two, and where it listens; worker 1 is whoever the test lets be it.
struct Alone {
  std::unique_ptr<Transport> transport;
  std::string name;
  int port = 0;

  explicit Alone(NetOptions options = {}, int peers_port = 1) {
    options.workers = 2;
    options.token = kGuestToken;
    options.address = kGuestHost;
    options.share = [&](const std::string& mine) {
      std::istringstream words(mine);
      std::string reach;
      std::string generation;
      std::string host;
      words >> reach >> name >> generation >> host >> port;
      const std::string nobody =
          reach + " gossamer-nobody 0 " + kGuestHost + " " + std::to_string(peers_port);
      return std::vector<std::string>{mine, nobody + (options.tls ? " tls" : "")};
    };
    transport = make_net_transport(options);
  }
};

/// What a guest that says it is worker `rank` answers to worker 0.
inline Meeting meeting_with(std::uint64_t rank, const Nonce& asked) {
  return {.caller = {.rank = rank}, .called = 0, .asked = asked, .told = random_nonce()};
}

/// Somebody who connects to a worker over TCP and says what the test wants.
class Guest {
 public:
  explicit Guest(int port, const std::shared_ptr<const TlsKeys>& keys = nullptr)
      : stream_(connect_stream({kGuestHost, port}), keys, Tls::End::connects) {}

  /// The nonce of the challenge.
  Nonce challenged() {
    wait([&] { return nonce_.has_value(); });
    return nonce_.value_or(Nonce{});
  }
  void introduce(std::uint64_t rank, const std::string& token) {
    const Meeting meeting = meeting_with(rank, challenged());
    const Greeting greeting = hello(token, meeting);
    say(greeting.words, greeting.text);
    const SessionKeys keys = session_keys(token, meeting);
    stream_.authenticate(keys.caller, keys.called, false);
  }
  void say(const Words& words, std::span<const std::byte> text = {}) {
    stream_.say(words, text);
    stream_.write();
  }
  bool is_hung_up() {
    return wait([&] { return stream_.has_ended(); });
  }
  bool is_welcome() {
    return wait([&] { return welcome_; });
  }
  /// Whether the worker says good-bye.
  bool is_sent_away() {
    return wait([&] { return sent_away_; });
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
      stream_.read({.heard =
                        [&](const Words& words, std::span<const std::byte> text) {
                          if (words.say == Say::challenge) nonce_ = nonce_of(words, text);
                          welcome_ = welcome_ || words.say == Say::welcome;
                          sent_away_ = sent_away_ || words.say == Say::bye;
                        },
                    .landing = [](const Words&) { return std::span<std::byte>(); },
                    .landed = [](const Words&) {}});
      stream_.write();
    }
    return condition();
  }

  Stream stream_;
  std::optional<Nonce> nonce_;
  bool welcome_ = false;
  bool sent_away_ = false;
};

}  // namespace gossamer
