// A peer of the same host: somebody with the token sends it the frames of the input.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "gossamer/transport/net/acceptor.h"
#include "gossamer/transport/net/frame_writer.h"
#include "gossamer/transport/net/local_wire.h"
#include "gossamer/transport/net/peer_script.h"

namespace gossamer {
namespace local_wire_fuzz {

using Bytes = std::vector<std::byte>;

const std::string kPeerToken = "open sesame";

/// What a packet may bring: memory as it should be, memory that can shrink, or something else.
Descriptor file_of(unsigned kind, unsigned pages) {
  if (kind == 3) return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Descriptor file(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  fuzz_check(file && ::ftruncate(file.get(), static_cast<off_t>(pages) * 4096) == 0, "no memory");
  if (kind == 1) ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return file;
}

void send(const PacketSocket& socket, const HandshakeFrame& frame) {
  if (socket) socket.send(frame.header, frame.text, -1);
}

/// Both have proved who they are.
PacketSocket met(Peer& peer, const PacketSocket& listener, bool proves) {
  peer.connect();
  PacketSocket socket = listener.accept();
  fuzz_check(static_cast<bool>(socket), "nobody connects");
  if (!proves) return socket;
  const Nonce nonce = {std::byte{5}};
  send(socket, make_challenge(nonce));
  peer.handle(EventLoop::Kind::out);
  FrameHeader header;
  Bytes text;
  Descriptor none;
  socket.receive(header, text, none);
  const Handshake before{.initiator = {}, .responder = 1, .responder_nonce = nonce};
  const auto handshake = read_hello(kPeerToken, before, header, text);
  fuzz_check(handshake.has_value(), "the peer does not prove who it is");
  send(socket, make_welcome(kPeerToken, *handshake, 0));
  peer.handle(EventLoop::Kind::out);
  return socket;
}

void drain(const PacketSocket& socket) {
  FrameHeader header;
  Bytes text;
  Descriptor none;
  while (socket && socket.receive(header, text, none) == PacketResult::done) continue;
}

}  // namespace local_wire_fuzz

bool fuzz_local_wire(std::span<const std::byte> bytes) {
  using namespace local_wire_fuzz;
  FuzzBytes input(bytes);
  const unsigned mode = input.take<std::uint8_t>();
  static const std::string name = "gossamer-fuzz-" + std::to_string(::getpid());
  const PacketSocket listener = PacketSocket::listen(name);
  PeerScript script({.own = {.rank = 0, .endpoint = "- me 0 - 0"}, .peer = 1, .token = kPeerToken},
                    local_wire(name), true);
  std::array<int, 2> ends = {};
  constexpr int kKind = SOCK_SEQPACKET | SOCK_NONBLOCK;
  fuzz_check(::socketpair(AF_UNIX, kKind, 0, ends.data()) == 0, "no sockets");
  script.peer().accept({.identity = {}, .socket = PacketSocket(Descriptor(ends[0])), .stream = {}});
  std::array<PacketSocket, 2> others = {PacketSocket(Descriptor(ends[1])),
                                        met(script.peer(), listener, (mode & 1U) != 0)};
  for (int steps = 0; !input.empty() && steps < 64; ++steps) {
    const int deed = input.take<std::uint8_t>() % 16;
    PacketSocket& other = others[static_cast<std::size_t>(deed % 2)];
    const auto kind = deed % 2 == 0 ? EventLoop::Kind::in : EventLoop::Kind::out;
    if (deed < PeerScript::kDeeds) {
      script.act(deed, input);
    } else if (deed < 13) {
      const FrameHeader header = take_header(input);
      const unsigned gives = input.take<std::uint8_t>();
      const Descriptor file = gives % 4 == 0 ? Descriptor() : file_of(gives % 4, gives / 4 % 8);
      if (other) other.send(header, input.take_bytes(header.follows), file.get());
    } else if (deed < 14) {
      drain(other);
    } else if (const auto count = input.take<std::uint8_t>(); count < 200) {
      const std::span<const std::byte> raw = input.take_bytes(count);
      if (other) ::send(other.descriptor(), raw.data(), raw.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
      other.reset();
    }
    script.peer().handle(kind);
    script.settle();
  }
  return script.has_done();
}

}  // namespace gossamer
