#pragma once
/// For tests: a client that connects to a worker of the same host and sends what the test wants.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include "gossamer/transport/conformance_fixture.h"
#include "gossamer/transport/net/packet_socket.h"
#include "gossamer/transport/net/test_client.h"

namespace gossamer {

/// Of this process.
inline std::ptrdiff_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all));
}

struct Packet {
  PacketResult result = PacketResult::later;
  FrameHeader header;
  conformance::Bytes text;
};

/// The next packet, or that there is none any more.
inline Packet next_packet(const PacketSocket& socket) {
  Packet packet;
  Descriptor descriptor;
  for (const Deadline limit = conformance::in_ms(20'000); Clock::now() < limit;) {
    packet.result = socket.receive(packet.header, packet.text, descriptor);
    if (packet.result != PacketResult::later) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return packet;
}

/// Whether the other end hangs up, whatever it sends before.
inline bool is_hung_up(const PacketSocket& socket) {
  for (;;) {
    const PacketResult result = next_packet(socket).result;
    if (result != PacketResult::done) return result == PacketResult::ended;
  }
}

/// Answers the challenge of worker 0.
inline void send_hello(const PacketSocket& socket, std::uint64_t rank, const std::string& token) {
  const Packet packet = next_packet(socket);
  const auto nonce = read_challenge(packet.header, packet.text);
  ASSERT_TRUE(nonce);
  const HandshakeFrame frame = make_hello(token, handshake_with(rank, *nonce));
  socket.send(frame.header, frame.text, -1);
}

/// A frame, and with it two descriptors, one more than a packet should have.
inline void send_with_descriptors(const PacketSocket& socket, FrameHeader header,
                                  const std::array<int, 2>& descriptors) {
  iovec part{&header, sizeof(header)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(descriptors))> control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(descriptors));
  std::memcpy(CMSG_DATA(rights), descriptors.data(), sizeof(descriptors));
  while (::sendmsg(socket.descriptor(), &message, MSG_NOSIGNAL) < 0 && errno == EAGAIN) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace gossamer
