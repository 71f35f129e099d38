/// A peer that knows the job's token and means harm; see hostile.py.
///
/// hostile_peer <kind> <token> <rank> <worker> <generation> <seconds> <name or host:port>
///
/// It is worker <rank> and connects to worker <worker>, over a socket of this host's or over TCP.
/// When it gets `bye` it comes back at once, as the next generation. Prints in JSON what it has
/// sent.

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/net/handshake.h"
#include "gossamer/transport/net/net_transport.h"
#include "gossamer/transport/net/packet_socket.h"
#include "gossamer/transport/net/stream_socket.h"

namespace {

using namespace gossamer;

constexpr std::size_t kHeldOpen = 1000;
constexpr std::size_t kBatchBytes = std::size_t{64} << 10;

struct Job {
  std::string kind;
  std::string token;
  std::uint64_t rank = 0;
  std::uint64_t worker = 0;
  Deadline limit;
  std::uint64_t generation = 0;
  std::int64_t meetings = 0;
  std::int64_t sent = 0;
  std::int64_t bytes = 0;

  bool goes_on() const { return Clock::now() < limit; }
  Handshake handshake(const Nonce& nonce, const std::string& reach) const {
    const std::string endpoint =
        reach + " gossamer-nobody " + std::to_string(generation) + " 127.0.0.1 1";
    return {
        .initiator = {.rank = rank, .member = rank, .generation = generation, .endpoint = endpoint},
        .responder = worker,
        .responder_nonce = nonce,
        .initiator_nonce = random_nonce()};
  }
  void count(std::size_t size) {
    ++sent;
    bytes += static_cast<std::int64_t>(size);
  }
};

bool wait_for(int descriptor, short events) {
  pollfd entry{.fd = descriptor, .events = events, .revents = 0};
  return ::poll(&entry, 1, 1000) > 0;
}

/// The header of the `number`-th frame of a kind.
FrameHeader header_of(const std::string& kind, std::uint64_t number) {
  const Tag tag{.step = static_cast<std::int64_t>(number)};
  if (kind == "ready") return {.type = FrameType::ready, .tag = tag, .number = number, .bytes = 8};
  if (kind == "same_ready") return {.type = FrameType::ready, .tag = tag, .number = 1, .bytes = 8};
  if (kind == "unready") {
    return {.type = number % 2 == 0 ? FrameType::ready : FrameType::unready,
            .tag = tag,
            .number = number / 2};
  }
  if (kind == "offers") return {.type = FrameType::offer, .tag = tag, .number = number, .bytes = 1};
  if (kind == "empty_offers") return {.type = FrameType::offer, .tag = tag, .number = 1};
  if (kind == "large_offers") {
    return {.type = FrameType::offer, .tag = tag, .number = number, .bytes = kInlineBytes};
  }
  if (kind == "memories")
    return {.type = FrameType::memory, .number = number % 0xffff'ffffU, .bytes = 8};
  if (kind == "withdrawals" || kind == "unread") {
    return {.type = number % 2 == 0 ? FrameType::offer : FrameType::withdraw,
            .tag = tag,
            .number = number / 2};
  }
  if (kind == "alive") return {};
  throw std::invalid_argument("no such kind: " + kind);
}

// --- over TCP ------------------------------------------------------------------------------------

struct Head {
  FrameHeader header;
  FrameCode body = {};
  FrameCode head = {};
};

bool receive_all(int socket, void* into, std::size_t bytes) {
  return wait_for(socket, POLLIN) &&
         ::recv(socket, into, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

bool send_all(int socket, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  std::array<char, 4096> unread;
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0 && !wait_for(socket, POLLOUT)) return true;
    at += std::max<ssize_t>(sent, 0);
    bytes -= static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
    if (::recv(socket, unread.data(), unread.size(), MSG_DONTWAIT) == 0) return false;
  }
  return true;
}

/// The next frame of the handshake, and its text; false without one.
bool receive_handshake(int socket, Head& head, std::vector<std::byte>& text) {
  if (!receive_all(socket, &head, sizeof(head)) || head.header.follows > 1024) return false;
  text.resize(head.header.follows);
  return receive_all(socket, text.data(), text.size());
}

/// Keys of a connection over which both ends have proved who they are.
std::optional<SessionKeys> shake_hands(Job& job, int socket) {
  if (!wait_for(socket, POLLOUT)) return std::nullopt;
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
  Head head;
  std::vector<std::byte> text;
  if (!receive_handshake(socket, head, text)) return std::nullopt;
  const auto nonce = read_challenge(head.header, text);
  if (!nonce) return std::nullopt;
  Handshake handshake = job.handshake(*nonce, "-");
  handshake.responder_authenticates = head.header.number != 0;
  HandshakeFrame frame = make_hello(job.token, handshake);
  frame.header.follows = static_cast<std::uint32_t>(frame.text.size());
  const Head own{.header = frame.header};
  ++job.generation;
  if (!send_all(socket, &own, sizeof(own)) ||
      !send_all(socket, frame.text.data(), frame.text.size()) ||
      !receive_handshake(socket, head, text) || head.header.type != FrameType::welcome) {
    return std::nullopt;
  }
  ++job.meetings;
  return session_keys(job.token, handshake);
}

void flood_stream(Job& job, const StreamAddress& address) {
  const Descriptor socket = connect_stream(address);
  const auto keys = socket ? shake_hands(job, socket.get()) : std::nullopt;
  if (!keys) return std::this_thread::sleep_for(std::chrono::milliseconds(1));
  FrameSeal seal(keys->initiator, false);
  std::vector<Head> batch(kBatchBytes / sizeof(Head));
  if (job.kind == "broken") {
    send_all(socket.get(), batch.data(), sizeof(Head));  // with codes of zeros
    job.count(sizeof(Head));
    char byte = 0;
    while (wait_for(socket.get(), POLLIN) && ::recv(socket.get(), &byte, 1, 0) > 0) continue;
    return;
  }
  for (std::uint64_t number = 0; job.goes_on();) {
    for (Head& head : batch) {
      head.header = header_of(job.kind, number++);
      seal.begin(FrameSeal::Part::text);
      head.body = seal.end();
      seal.begin(FrameSeal::Part::head);
      seal.add(std::as_bytes(std::span(&head.header, 1)));
      seal.add(head.body);
      head.head = seal.end();
      seal.next();
      job.count(sizeof(head));
    }
    if (!send_all(socket.get(), batch.data(), batch.size() * sizeof(Head))) return;
  }
}

// --- inside a host -------------------------------------------------------------------------------

/// Sends it once there is room; false where there is no other end any more.
bool send(const PacketSocket& socket, const FrameHeader& header, std::span<const std::byte> data,
          int descriptor) {
  for (;;) {
    const PacketResult result = socket.send(header, data, descriptor);
    if (result != PacketResult::later) return result == PacketResult::done;
    if (!wait_for(socket.descriptor(), POLLOUT)) return false;
  }
}

bool receive(const PacketSocket& socket, FrameHeader& header, std::vector<std::byte>& text) {
  Descriptor descriptor;
  return wait_for(socket.descriptor(), POLLIN) &&
         socket.receive(header, text, descriptor) == PacketResult::done;
}

void flood_packets(Job& job, const std::string& name) {
  const PacketSocket socket = PacketSocket::connect(name);
  FrameHeader header;
  std::vector<std::byte> text;
  const auto nonce =
      socket && receive(socket, header, text) ? read_challenge(header, text) : std::nullopt;
  if (!nonce) return std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const HandshakeFrame frame =
      make_hello(job.token, job.handshake(*nonce, reach_of_shared_memory()));
  ++job.generation;
  if (!send(socket, frame.header, frame.text, -1) || !receive(socket, header, text)) return;
  ++job.meetings;
  if (job.kind == "broken") {
    job.count(sizeof(FrameHeader));
    send(socket, {.magic = 1}, {}, -1);
    while (receive(socket, header, text)) continue;
    return;
  }
  const std::vector<std::byte> data(kInlineBytes);
  const SharedMemory memory(4096);
  for (std::uint64_t number = 0; job.goes_on(); ++number) {
    const FrameHeader next = header_of(job.kind, number);
    const bool has_data = next.type == FrameType::offer;
    const std::span<const std::byte> follows(data.data(), has_data ? next.bytes : 0);
    const int descriptor = next.type == FrameType::memory ? memory.descriptor() : -1;
    if (!send(socket, next, follows, descriptor)) return;
    job.count(sizeof(next) + follows.size());
    while (job.kind != "unread" && socket.is_readable()) {
      if (!receive(socket, header, text) || header.type == FrameType::bye) return;
    }
  }
}

void hold_half_open(Job& job, const StreamAddress& address, const std::string& name) {
  std::deque<Descriptor> streams;
  std::deque<PacketSocket> packets;
  while (job.goes_on()) {
    if (name.empty()) {
      streams.push_back(connect_stream(address));
      if (streams.size() > kHeldOpen) streams.pop_front();
    } else {
      packets.push_back(PacketSocket::connect(name));
      if (packets.size() > kHeldOpen) packets.pop_front();
    }
    job.count(sizeof(FrameHeader));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 8) {
    std::cerr << "usage: hostile_peer KIND TOKEN RANK WORKER GENERATION SECONDS PLACE\n";
    return 2;
  }
  Job job{.kind = arguments[1],
          .token = arguments[2],
          .rank = std::stoull(arguments[3]),
          .worker = std::stoull(arguments[4]),
          .limit = Clock::now() + std::chrono::milliseconds(std::stoll(arguments[6]) * 1000),
          .generation = std::stoull(arguments[5])};
  std::string name = arguments[7];
  StreamAddress address;
  if (const auto colon = name.rfind(':'); colon != std::string::npos) {
    address = {name.substr(0, colon), std::stoi(name.substr(colon + 1))};
    name.clear();
  }
  allow_many_descriptors();
  while (job.goes_on()) {
    if (job.kind == "half_open") {
      hold_half_open(job, address, name);
    } else if (name.empty()) {
      flood_stream(job, address);
    } else {
      flood_packets(job, name);
    }
  }
  std::cout << "{\"meetings\": " << job.meetings << ", \"said\": " << job.sent
            << ", \"bytes\": " << job.bytes << ", \"generation\": " << job.generation << "}\n";
  return 0;
}
