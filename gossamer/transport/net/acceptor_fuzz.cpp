// The acceptor of a worker: nobody is let in without a proof of the token.

#include <sys/socket.h>

#include <array>
#include <chrono>

#include "gossamer/transport/net/acceptor.h"
#include "gossamer/transport/net/frame_writer.h"

namespace gossamer {
namespace acceptor_fuzz {

using Bytes = std::vector<std::byte>;

const std::string kAcceptorToken = "open sesame";

/// Connects in one of the two ways.
struct Client {
  PacketSocket packets;
  Descriptor stream;
  std::optional<Nonce> nonce = {};  ///< of the challenge
  bool knows = false;               ///< has sent a hello that is right

  int descriptor() const { return stream ? stream.get() : packets.descriptor(); }
  void write(const FrameHeader& header, std::span<const std::byte> text) const {
    if (packets) packets.send(header, text, -1);
    if (!stream) return;
    FrameHeader head = header;
    if (head.follows == 0) head.follows = static_cast<std::uint32_t>(text.size());
    const Bytes frame = FrameWriter({}, false).frame(head, text);
    ::send(stream.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void take_challenge() {
    FrameHeader header;
    Bytes text(200);
    Descriptor none;
    if (packets && packets.receive(header, text, none) == PacketResult::done) {
      nonce = read_challenge(header, text);
    }
    constexpr std::size_t kHeader = 96;
    if (!stream) return;
    const ssize_t got = ::recv(stream.get(), text.data(), text.size(), MSG_DONTWAIT);
    if (got < static_cast<ssize_t>(kHeader + sizeof(Nonce))) return;
    std::memcpy(&header, text.data(), sizeof(header));
    nonce = read_challenge(header, std::span(text).subspan(kHeader, sizeof(Nonce)));
  }
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    if (stream) ::setsockopt(stream.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    stream.reset();
    packets.reset();
  }
};

/// Right unless `change` says where it is not.
void send_hello(Client& client, FuzzBytes& input, bool authenticates) {
  client.take_challenge();
  if (!client.nonce) return;
  const Identity identity{.rank = input.take<std::uint8_t>(), .endpoint = "- a 0 - 0"};
  const Handshake handshake{.initiator = identity,
                            .responder = 0,
                            .responder_nonce = *client.nonce,
                            .initiator_nonce = {std::byte{1}},
                            .responder_authenticates = authenticates && client.stream};
  HandshakeFrame frame = make_hello(kAcceptorToken, handshake);
  const auto change = input.take<std::uint8_t>();
  if (change != 0) {
    frame.text[input.take<std::uint8_t>() % frame.text.size()] ^= std::byte{change};
  }
  client.knows = change == 0;
  client.write(frame.header, frame.text);
}

}  // namespace acceptor_fuzz

bool fuzz_acceptor(std::span<const std::byte> bytes) {
  using namespace acceptor_fuzz;
  FuzzBytes input(bytes);
  const bool authenticates = input.take<std::uint8_t>() % 2 != 0;
  EventLoop loop(std::chrono::hours(1));
  Acceptor acceptor({.own = {.rank = 0},
                     .token = kAcceptorToken,
                     .address = "127.0.0.1",
                     .authenticates = authenticates},
                    loop);
  std::array<Client, 4> clients;
  std::uint32_t last_unverified = 0;
  int accepted = 0;
  const auto handle = [&] {
    acceptor.handle({EventLoop::Kind::local_listener, 0});
    acceptor.handle({EventLoop::Kind::stream_listener, 0});
    for (std::uint32_t number = 1; number <= last_unverified; ++number) {
      if (acceptor.handle({EventLoop::Kind::unverified, number})) ++accepted;
    }
  };
  int proved = 0;
  for (int steps = 0; !input.empty() && steps < 40; ++steps) {
    const int deed = input.take<std::uint8_t>() % 8;
    Client& client = clients[input.take<std::uint8_t>() % clients.size()];
    if (deed < 2) {
      client.reset();
      client = Client();
      if (deed == 0) client.packets = PacketSocket::connect(acceptor.name());
      if (deed == 1) client.stream = connect_stream(acceptor.address());
      ++last_unverified;
    } else if (deed < 4) {
      const bool had_proved = client.knows;
      send_hello(client, input, authenticates);
      proved += client.knows && !had_proved ? 1 : 0;
    } else if (deed == 4) {
      const FrameHeader header = take_header(input);
      client.write(header, input.take_bytes(input.take<std::uint8_t>()));
    } else if (deed == 5) {
      const std::span<const std::byte> raw = input.take_bytes(input.take<std::uint8_t>());
      const int to = client.descriptor();
      if (to >= 0) ::send(to, raw.data(), raw.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (deed == 6) {
      client.reset();
    } else {
      acceptor.beat(input.take<std::uint8_t>() % 4 == 0 ? Deadline::max() : Clock::now());
    }
    handle();
    fuzz_check(accepted <= proved, "somebody was let in who has proved nothing");
  }
  for (Client& client : clients) client.reset();
  return accepted > 0;
}

}  // namespace gossamer
