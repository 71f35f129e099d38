// A peer of the same host, spoken to by somebody who has the token and says what the input says.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "gossamer/transport/net/frame_writer.h"
#include "gossamer/transport/net/local_peer.h"
#include "gossamer/transport/net/peer_script.h"

namespace gossamer {
namespace local_peer_fuzz {

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

void say(const PacketSocket& socket, const Greeting& greeting) {
  if (socket) socket.send(greeting.words, greeting.text, -1);
}

/// Both have proved who they are.
PacketSocket met(LocalPeer& peer, PeerScript& script, const PacketSocket& door, bool proves) {
  peer.reach();
  PacketSocket socket = door.accept();
  fuzz_check(static_cast<bool>(socket), "nobody connects");
  if (!proves) return socket;
  const Nonce nonce = {std::byte{5}};
  say(socket, challenge(nonce));
  script.hear(EventLoop::Kind::out);
  Words words;
  Bytes text;
  Descriptor none;
  socket.receive(words, text, none);
  const auto meeting = meeting_of(kPeerToken, {.called = 1, .asked = nonce}, words, text);
  fuzz_check(meeting.has_value(), "the peer does not prove who it is");
  say(socket, welcome(kPeerToken, *meeting, 0));
  script.hear(EventLoop::Kind::out);
  return socket;
}

void drain(const PacketSocket& socket) {
  Words words;
  Bytes text;
  Descriptor none;
  while (socket && socket.receive(words, text, none) == PacketResult::done) continue;
}

}  // namespace local_peer_fuzz

bool fuzz_local_peer(std::span<const std::byte> bytes) {
  using namespace local_peer_fuzz;
  FuzzBytes input(bytes);
  const unsigned mode = input.take<std::uint8_t>();
  static const std::string name = "gossamer-fuzz-" + std::to_string(::getpid());
  const PacketSocket door = PacketSocket::listen(name);
  LocalPeer peer({.own = {.rank = 0, .card = "- me 0 - 0"}, .peer = 1, .token = kPeerToken}, name);
  PeerScript script(peer);
  std::array<int, 2> ends = {};
  constexpr int kKind = SOCK_SEQPACKET | SOCK_NONBLOCK;
  fuzz_check(::socketpair(AF_UNIX, kKind, 0, ends.data()) == 0, "no sockets");
  peer.greet(PacketSocket(Descriptor(ends[0])));
  std::array<PacketSocket, 2> others = {PacketSocket(Descriptor(ends[1])),
                                        met(peer, script, door, (mode & 1U) != 0)};
  for (int steps = 0; !input.empty() && steps < 64; ++steps) {
    const int deed = input.take<std::uint8_t>() % 16;
    PacketSocket& other = others[static_cast<std::size_t>(deed % 2)];
    const auto kind = deed % 2 == 0 ? EventLoop::Kind::in : EventLoop::Kind::out;
    if (deed < PeerScript::kDeeds) {
      script.act(deed, input);
    } else if (deed < 13) {
      const Words words = take_words(input);
      const unsigned gives = input.take<std::uint8_t>();
      const Descriptor file = gives % 4 == 0 ? Descriptor() : file_of(gives % 4, gives / 4 % 8);
      if (other) other.send(words, input.take_bytes(words.follows), file.get());
    } else if (deed < 14) {
      drain(other);
    } else if (const auto count = input.take<std::uint8_t>(); count < 200) {
      const std::span<const std::byte> raw = input.take_bytes(count);
      if (other) ::send(other.descriptor(), raw.data(), raw.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } else {
      other.reset();
    }
    script.hear(kind);
    script.settle();
  }
  return script.has_done();
}

}  // namespace gossamer
