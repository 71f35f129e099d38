#include "gossamer/transport/net/stream_wire.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <functional>
#include <optional>

#include "gossamer/base/timeout.h"
#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/handshake.h"
#include "gossamer/transport/net/net_transport.h"
#include "gossamer/transport/net/stream.h"

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
struct ConnectingWorker {
  StreamListener listener = listen_for_streams(kLoopback);
  std::unique_ptr<Transport> transport;

  explicit ConnectingWorker(NetOptions options = {}) {
    options.rank = 0;
    options.workers = 2;
    options.token = kToken;
    options.address = kLoopback;
    options.share_memory = false;
    options.share = [this](const std::string& mine) {
      const std::string port = std::to_string(listener.address.port);
      return std::vector<std::string>{mine, "- other 0 " + kLoopback + " " + port};
    };
    transport = make_net_transport(options);
  }

  /// The next connection of worker 0.
  Stream accepted() const {
    pollfd entry{.fd = listener.socket.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&entry, 1, 20'000), 1);
    return Stream(accept_stream(listener.socket));
  }
};

void challenge_with(Stream& stream, const Nonce& nonce) {
  const HandshakeFrame frame = make_challenge(nonce);
  stream.send(frame.header, frame.text);
  stream.write();
}

/// Reads until worker 0 waits for a payload, and sends that.
void serve(Stream& stream, const Bytes& payload) {
  const Nonce nonce = random_nonce();
  challenge_with(stream, nonce);
  bool is_served = false;
  const Handshake before{.initiator = {}, .responder = 1, .responder_nonce = nonce};
  const auto handle = [&](const FrameHeader& header, std::span<const std::byte> text) {
    if (const auto handshake = read_hello(kToken, before, header, text)) {
      const HandshakeFrame frame = make_welcome(kToken, *handshake, 0);
      stream.send(frame.header, frame.text);
      const SessionKeys keys = session_keys(kToken, *handshake);
      stream.authenticate(keys.responder, keys.initiator, false);
    }
    if (header.type != FrameType::ready) return;
    stream.start(header.number, payload);
    is_served = true;
  };
  for (const Deadline limit = patience(); !is_served && Clock::now() < limit;) {
    stream.read({.frame = handle,
                 .landing = [](const FrameHeader&) { return std::span<std::byte>(); },
                 .landed = [](const FrameHeader&) {}});
    stream.write();
    pollfd entry{.fd = stream.descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&entry, 1, 10);
  }
  EXPECT_TRUE(is_served);
}

TEST(StreamWire, ConnectsAgainUntilTheyHaveMet) {
  const ConnectingWorker lone;
  const Bytes payload = pattern(1000, 1);
  Bytes landing(payload.size());
  const Request received = lone.transport->receive(1, {}, landing, patience());
  for (int i = 0; i < 2; ++i) {
    Stream hung_up = lone.accepted();
    if (i == 1) challenge_with(hung_up, random_nonce());
  }
  Stream stream = lone.accepted();
  serve(stream, payload);
  EXPECT_EQ(finish(*lone.transport, received), payload);
}

TEST(StreamWire, DoesNotConnectAgainOnceTheyHaveMet) {
  const ConnectingWorker lone;
  const Bytes payload = pattern(1000, 1);
  Bytes landing(payload.size());
  const Request received = lone.transport->receive(1, {}, landing, patience());
  {
    Stream stream = lone.accepted();
    serve(stream, payload);
    EXPECT_EQ(finish(*lone.transport, received), payload);
  }
  const Request after = lone.transport->receive(1, {.step = 1}, landing, patience());
  EXPECT_LT(finish_failed(*lone.transport, after).elapsed_s, 20);
}

/// How the end of the connection counts for worker 0, which has heard nothing of worker 1 for so
/// long, and waits for it.
Fault fault_of_end_after(double silence_s) {
  const ConnectingWorker lone({.longest_silence = std::chrono::seconds(1), .least_heard = 2});
  const Bytes payload = pattern(1000, 1);
  Bytes landing(payload.size());
  const Request received = lone.transport->receive(1, {}, landing, patience());
  std::optional<Stream> stream(lone.accepted());
  serve(*stream, payload);
  EXPECT_EQ(finish(*lone.transport, received), payload);
  const Request waits = lone.transport->receive(1, {.step = 1}, landing, patience());
  const Deadline end = Clock::now() + duration_of(silence_s, "test");
  while (Clock::now() < end) lone.transport->progress(end);
  EXPECT_EQ(lone.transport->poll(waits).state, Status::State::pending);
  stream.reset();
  return finish_failed(*lone.transport, waits).fault;
}

TEST(StreamWire, TheEndOfOneThatWasSilentSaysNotThatItHasEnded) {
  EXPECT_EQ(fault_of_end_after(0), Fault::lost);
  EXPECT_EQ(fault_of_end_after(2.5), Fault::silent);
}

TEST(StreamWire, GivesUpWhereNobodyListens) {
  ConnectingWorker lone;
  lone.listener.socket.reset();
  Bytes landing(8);
  const Request received = lone.transport->receive(1, {}, landing, patience());
  const auto failure = finish_failed(*lone.transport, received);
  EXPECT_LT(failure.elapsed_s, 20);
  EXPECT_NE(failure.reason.find("refused"), std::string::npos) << failure.reason;
}

}  // namespace
}  // namespace gossamer
