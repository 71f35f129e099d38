// Streams over TLS: bytes of a client without the key, and changes by somebody on the way.

#include <sys/socket.h>

#include <array>

#include "gossamer/base/fuzz.h"
#include "gossamer/transport/net/stream.h"
#include "gossamer/transport/net/tls.h"

namespace gossamer {
namespace tls_fuzz {

constexpr int kMostSent = 3;

/// An end, and the socket at which somebody on the way reads and writes.
struct Place {
  Stream stream;
  Descriptor way;
  std::vector<std::uint64_t> received = {};

  void turn() {
    stream.write();
    const auto take = [&](const FrameHeader& header, auto) { received.push_back(header.number); };
    stream.read({.frame = take,
                 .landing = [](const FrameHeader&) { return std::span<std::byte>(); },
                 .landed = [](const FrameHeader&) {}});
    stream.write();
  }
};

Place make(const std::shared_ptr<const TlsKeys>& keys, Tls::End end) {
  std::array<int, 2> ends = {};
  fuzz_check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0, "no sockets");
  return {Stream(Descriptor(ends[0]), keys, end), Descriptor(ends[1])};
}

void send(const Place& to, std::span<const std::byte> bytes) {
  ::send(to.way.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::vector<std::byte> take_from(const Place& place) {
  std::vector<std::byte> bytes(1 << 15);
  const ssize_t got = ::recv(place.way.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

/// The frames that were received must be the first of those that were sent.
void check(const Place& place) {
  for (std::size_t k = 0; k < place.received.size(); ++k) {
    fuzz_check(k < kMostSent && place.received[k] == k + 1, "received what was not sent");
  }
}

}  // namespace tls_fuzz

bool fuzz_tls(std::span<const std::byte> bytes) {
  using namespace tls_fuzz;
  static const auto keys = std::make_shared<const TlsKeys>("open sesame");
  FuzzBytes input(bytes);
  std::array<Place, 2> places = {make(keys, Tls::End::connects), make(keys, Tls::End::accepts)};
  for (Place& place : places) {
    for (std::uint64_t k = 1; k <= kMostSent; ++k) place.stream.send({.number = k});
    place.turn();
  }
  for (int turns = 0; turns < 24; ++turns) {
    const std::size_t from = static_cast<std::size_t>(turns % 2);
    std::vector<std::byte> under_way = take_from(places[from]);
    Place& to = places[1 - from];
    const unsigned deed = input.take<std::uint8_t>() % 8;
    if (deed == 1 && !under_way.empty()) {
      under_way[input.take<std::uint16_t>() % under_way.size()] ^= input.take<std::byte>();
    }
    if (deed == 2) under_way.resize(std::min<std::size_t>(input.take<std::uint16_t>(), 1 << 14));
    if (deed == 3) send(to, input.take_bytes(input.take<std::uint8_t>()));
    if (deed == 4) send(places[from], under_way);  // back to its sender
    if (deed == 5) send(to, under_way);            // twice
    send(to, under_way);
    to.turn();
    check(to);
  }
  return places[0].received.size() == kMostSent && places[1].received.size() == kMostSent;
}

}  // namespace gossamer
