// The doors of a worker: nobody is let in who has not proved to have the token.

#include <sys/socket.h>

#include <array>
#include <chrono>

#include "gossamer/transport/net/frame_writer.h"
#include "gossamer/transport/net/reception.h"

namespace gossamer {
namespace reception_fuzz {

using Bytes = std::vector<std::byte>;

const std::string kDoorToken = "open sesame";

/// Somebody who comes over one of the two ways.
struct Visitor {
  PacketSocket packets;
  Descriptor stream;
  std::optional<Nonce> nonce = {};  ///< of the challenge
  bool knows = false;               ///< has said a hello that is right

  int descriptor() const { return stream ? stream.get() : packets.descriptor(); }
  void write(const Words& words, std::span<const std::byte> text) const {
    if (packets) packets.send(words, text, -1);
    if (!stream) return;
    Words head = words;
    if (head.follows == 0) head.follows = static_cast<std::uint32_t>(text.size());
    const Bytes frame = FrameWriter({}, false).frame(head, text);
    ::send(stream.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void read_challenge() {
    Words words;
    Bytes text(200);
    Descriptor none;
    if (packets && packets.receive(words, text, none) == PacketResult::done) {
      nonce = nonce_of(words, text);
    }
    constexpr std::size_t kHeader = 96;
    if (!stream) return;
    const ssize_t got = ::recv(stream.get(), text.data(), text.size(), MSG_DONTWAIT);
    if (got < static_cast<ssize_t>(kHeader + sizeof(Nonce))) return;
    std::memcpy(&words, text.data(), sizeof(words));
    nonce = nonce_of(words, std::span(text).subspan(kHeader, sizeof(Nonce)));
  }
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    if (stream) ::setsockopt(stream.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    stream.reset();
    packets.reset();
  }
};

/// Right unless `change` says where it is not.
void say_hello(Visitor& visitor, FuzzBytes& input, bool asks) {
  visitor.read_challenge();
  if (!visitor.nonce) return;
  const Meeting meeting{.caller = {.rank = input.take<std::uint8_t>(), .card = "- a 0 - 0"},
                        .called = 0,
                        .asked = *visitor.nonce,
                        .told = {std::byte{1}},
                        .asks = asks && visitor.stream};
  Greeting greeting = hello(kDoorToken, meeting);
  const auto change = input.take<std::uint8_t>();
  if (change != 0)
    greeting.text[input.take<std::uint8_t>() % greeting.text.size()] ^= std::byte{change};
  visitor.knows = change == 0;
  visitor.write(greeting.words, greeting.text);
}

}  // namespace reception_fuzz

bool fuzz_reception(std::span<const std::byte> bytes) {
  using namespace reception_fuzz;
  FuzzBytes input(bytes);
  const bool authenticates = input.take<std::uint8_t>() % 2 != 0;
  EventLoop loop(std::chrono::hours(1));
  Reception reception({.own = {.rank = 0},
                       .token = kDoorToken,
                       .address = "127.0.0.1",
                       .authenticates = authenticates},
                      loop);
  std::array<Visitor, 4> visitors;
  std::uint32_t last_stranger = 0;
  int arrivals = 0;
  const auto hear = [&] {
    reception.hear({EventLoop::Kind::door, 0});
    reception.hear({EventLoop::Kind::stream_door, 0});
    for (std::uint32_t number = 1; number <= last_stranger; ++number) {
      if (reception.hear({EventLoop::Kind::stranger, number})) ++arrivals;
    }
  };
  int invited = 0;
  for (int steps = 0; !input.empty() && steps < 40; ++steps) {
    const int deed = input.take<std::uint8_t>() % 8;
    Visitor& visitor = visitors[input.take<std::uint8_t>() % visitors.size()];
    if (deed < 2) {
      visitor.reset();
      visitor = Visitor();
      if (deed == 0) visitor.packets = PacketSocket::connect(reception.name());
      if (deed == 1) visitor.stream = connect_stream(reception.address());
      ++last_stranger;
    } else if (deed < 4) {
      const bool had_proved = visitor.knows;
      say_hello(visitor, input, authenticates);
      invited += visitor.knows && !had_proved ? 1 : 0;
    } else if (deed == 4) {
      const Words words = take_words(input);
      visitor.write(words, input.take_bytes(input.take<std::uint8_t>()));
    } else if (deed == 5) {
      const std::span<const std::byte> raw = input.take_bytes(input.take<std::uint8_t>());
      const int to = visitor.descriptor();
      if (to >= 0) ::send(to, raw.data(), raw.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (deed == 6) {
      visitor.reset();
    } else {
      reception.beat(input.take<std::uint8_t>() % 4 == 0 ? Deadline::max() : Clock::now());
    }
    hear();
    fuzz_check(arrivals <= invited, "somebody was let in who has proved nothing");
  }
  for (Visitor& visitor : visitors) visitor.reset();
  return arrivals > 0;
}

}  // namespace gossamer
