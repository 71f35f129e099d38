// A peer over TCP: somebody with the token sends it the frames of the input.

#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "gossamer/transport/net/acceptor.h"
#include "gossamer/transport/net/frame_writer.h"
#include "gossamer/transport/net/peer_script.h"
#include "gossamer/transport/net/stream_wire.h"

namespace gossamer {
namespace stream_wire_fuzz {

using Bytes = std::vector<std::byte>;

const std::string kPeerToken = "open sesame";
constexpr FrameKey kIn = {std::byte{7}};
constexpr FrameKey kBack = {std::byte{9}};
constexpr std::size_t kHeader = 96;

/// One end of a connection, with the keys of the frames that it sends.
struct End {
  Descriptor socket;
  std::unique_ptr<FrameWriter> writer;

  void write(std::span<const std::byte> bytes) const {
    if (socket) ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  /// So many bytes of what has come; zeros for what does not come at once.
  Bytes read(std::size_t count) const {
    Bytes bytes(count);
    std::size_t done = 0;
    while (done < count) {
      pollfd entry{.fd = socket.get(), .events = POLLIN, .revents = 0};
      if (::poll(&entry, 1, 100) <= 0) break;
      const ssize_t got = ::recv(socket.get(), bytes.data() + done, count - done, MSG_DONTWAIT);
      if (got <= 0) break;
      done += static_cast<std::size_t>(got);
    }
    return bytes;
  }
  /// Reads what has come and forgets it.
  void drain() const {
    Bytes bytes(1 << 16);
    while (socket && ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) continue;
  }
  /// At once, so that no port waits for what may still be under way.
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    if (socket) ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    socket.reset();
  }
};

/// The connection that the peer has made, once both have proved who they are, where `proves`.
End met(Peer& peer, const StreamListener& listener, bool proves) {
  peer.connect();
  pollfd entry{.fd = listener.socket.get(), .events = POLLIN, .revents = 0};
  ::poll(&entry, 1, 1000);
  End end{accept_stream(listener.socket), std::make_unique<FrameWriter>(kIn, false)};
  fuzz_check(static_cast<bool>(end.socket), "nobody connects");
  if (!proves) return end;
  FrameWriter plain(kIn, false);
  const Nonce nonce = {std::byte{5}};
  const HandshakeFrame asked = make_challenge(nonce);
  FrameHeader header = asked.header;
  header.follows = static_cast<std::uint32_t>(asked.text.size());
  end.write(plain.frame(header, asked.text));
  peer.handle(EventLoop::Kind::out);
  const Bytes head = end.read(kHeader);
  std::memcpy(&header, head.data(), sizeof(header));
  const Bytes text = end.read(header.follows);
  const Handshake before{.initiator = {}, .responder = 1, .responder_nonce = nonce};
  const auto handshake = read_hello(kPeerToken, before, header, text);
  fuzz_check(handshake.has_value(), "the peer does not prove who it is");
  const HandshakeFrame frame = make_welcome(kPeerToken, *handshake, 0);
  header = frame.header;
  header.follows = static_cast<std::uint32_t>(frame.text.size());
  end.write(plain.frame(header, frame.text));
  peer.handle(EventLoop::Kind::out);
  const SessionKeys keys = session_keys(kPeerToken, *handshake);
  end.writer = std::make_unique<FrameWriter>(keys.responder, handshake->authenticates());
  return end;
}

}  // namespace stream_wire_fuzz

bool fuzz_stream_wire(std::span<const std::byte> bytes) {
  using namespace stream_wire_fuzz;
  FuzzBytes input(bytes);
  const unsigned mode = input.take<std::uint8_t>();
  const bool authenticates = (mode & 1U) != 0;
  const StreamListener listener = listen_for_streams("127.0.0.1");
  PeerScript script({.own = {.rank = 0, .endpoint = "- me 0 - 0"},
                     .peer = 1,
                     .token = kPeerToken,
                     .authenticates = authenticates},
                    stream_wire(listener.address, nullptr), false);
  std::array<int, 2> ends = {};
  fuzz_check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0, "no sockets");
  Stream stream{Descriptor(ends[0])};
  stream.authenticate(kBack, kIn, authenticates);
  script.peer().accept({.identity = {}, .socket = {}, .stream = std::move(stream)});
  auto writer = std::make_unique<FrameWriter>(kIn, authenticates);
  std::array<End, 2> others = {End{Descriptor(ends[1]), std::move(writer)},
                               met(script.peer(), listener, (mode & 2U) != 0)};
  for (int steps = 0; !input.empty() && steps < 64; ++steps) {
    const int deed = input.take<std::uint8_t>() % 16;
    End& other = others[static_cast<std::size_t>(deed % 2)];
    const auto kind = deed % 2 == 0 ? EventLoop::Kind::in : EventLoop::Kind::out;
    if (deed < PeerScript::kDeeds) {
      script.act(deed, input);
    } else if (deed < 12) {
      const FrameHeader header = take_header(input);
      const bool is_wrong = input.take<std::uint8_t>() == 255;
      other.write(other.writer->frame(header, input.take_bytes(header.follows), is_wrong));
    } else if (deed < 14) {
      other.drain();
    } else if (input.take<std::uint8_t>() < 128) {
      other.write(input.take_bytes(input.take<std::uint8_t>()));
    } else {
      other.reset();
    }
    script.peer().handle(kind);
    script.settle();
  }
  for (End& other : others) other.reset();
  return script.has_done();
}

}  // namespace gossamer
