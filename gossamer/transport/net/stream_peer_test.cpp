#include "gossamer/transport/net/stream_peer.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <functional>

#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/net_transport.h"

namespace gossamer {
namespace {

using conformance::Bytes;
using conformance::finish;
using conformance::finish_failed;
using conformance::in_ms;
using conformance::patience;
using conformance::pattern;

const std::string kToken = "open sesame";
const std::string kLoopback = "127.0.0.1";

/// Worker 0 of two; worker 1 listens, and is what the test makes of it.
struct Alone {
  StreamDoor door = listen_for_streams(kLoopback);
  std::unique_ptr<Transport> transport;

  Alone() {
    NetOptions options{.rank = 0, .workers = 2, .token = kToken};
    options.address = kLoopback;
    options.share_memory = false;
    options.share = [this](const std::string& mine) {
      const std::string port = std::to_string(door.address.port);
      return std::vector<std::string>{mine, "- other 0 " + kLoopback + " " + port};
    };
    transport = make_net_transport(options);
  }

  /// The next connection of worker 0.
  Stream accepted() const {
    pollfd entry{.fd = door.socket.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&entry, 1, 20'000), 1);
    return Stream(accept_stream(door.socket));
  }
};

void challenge_with(Stream& stream, const Nonce& nonce) {
  const Greeting greeting = challenge(nonce);
  stream.say(greeting.words, greeting.text);
  stream.write();
}

/// Reads until worker 0 has said that it waits for a payload, and sends that.
void serve(Stream& stream, const Bytes& payload) {
  const Nonce nonce = random_nonce();
  challenge_with(stream, nonce);
  bool is_served = false;
  const auto hear = [&](const Words& words, std::span<const std::byte> text) {
    if (const auto meeting = meeting_of(kToken, {.called = 1, .asked = nonce}, words, text)) {
      const Greeting greeting = welcome(kToken, *meeting, 0);
      stream.say(greeting.words, greeting.text);
      const SessionKeys keys = session_keys(kToken, *meeting);
      stream.authenticate(keys.called, keys.caller, false);
    }
    if (words.say != Say::ready) return;
    stream.start(words.number, payload);
    is_served = true;
  };
  for (const Deadline limit = patience(); !is_served && Clock::now() < limit;) {
    stream.read({.heard = hear,
                 .landing = [](const Words&) { return std::span<std::byte>(); },
                 .landed = [](const Words&) {}});
    stream.write();
    pollfd entry{.fd = stream.descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&entry, 1, 10);
  }
  EXPECT_TRUE(is_served);
}

TEST(StreamPeer, ConnectsAgainUntilTheyHaveMet) {
  const Alone alone;
  const Bytes payload = pattern(1000, 1);
  Bytes landing(payload.size());
  const Request received = alone.transport->receive(1, {}, landing, patience());
  for (int i = 0; i < 2; ++i) {
    Stream hung_up = alone.accepted();
    if (i == 1) challenge_with(hung_up, random_nonce());
  }
  Stream stream = alone.accepted();
  serve(stream, payload);
  EXPECT_EQ(finish(*alone.transport, received), payload);
}

TEST(StreamPeer, DoesNotConnectAgainOnceTheyHaveMet) {
  const Alone alone;
  const Bytes payload = pattern(1000, 1);
  Bytes landing(payload.size());
  const Request received = alone.transport->receive(1, {}, landing, patience());
  {
    Stream stream = alone.accepted();
    serve(stream, payload);
    EXPECT_EQ(finish(*alone.transport, received), payload);
  }
  const Request after = alone.transport->receive(1, {.step = 1}, landing, patience());
  EXPECT_LT(finish_failed(*alone.transport, after).elapsed_s, 20);
}

TEST(StreamPeer, GivesUpWhereNobodyListens) {
  Alone alone;
  alone.door.socket.reset();
  Bytes landing(8);
  const Request received = alone.transport->receive(1, {}, landing, patience());
  const auto failure = finish_failed(*alone.transport, received);
  EXPECT_LT(failure.elapsed_s, 20);
  EXPECT_NE(failure.reason.find("refused"), std::string::npos) << failure.reason;
}

}  // namespace
}  // namespace gossamer
