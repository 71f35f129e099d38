/// A peer that knows the job's token and means harm; see hostile.py.
///
/// hostile_peer <kind> <token> <rank> <worker> <generation> <seconds> <name or host:port>
///
/// It is worker <rank> and talks to worker <worker>, over a socket of this host's or over TCP. When
/// it is sent away it comes back at once, as the next generation. Prints in JSON what it has said.

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
  std::int64_t said = 0;
  std::int64_t bytes = 0;

  bool goes_on() const { return Clock::now() < limit; }
  Meeting meeting(const Nonce& asked, const std::string& reach) const {
    const std::string card =
        reach + " gossamer-nobody " + std::to_string(generation) + " 127.0.0.1 1";
    return {.caller = {.rank = rank, .member = rank, .generation = generation, .card = card},
            .called = worker,
            .asked = asked,
            .told = random_nonce()};
  }
  void count(std::size_t size) {
    ++said;
    bytes += static_cast<std::int64_t>(size);
  }
};

bool wait_for(int descriptor, short events) {
  pollfd entry{.fd = descriptor, .events = events, .revents = 0};
  return ::poll(&entry, 1, 1000) > 0;
}

/// What comes after the `number`-th words of a kind.
Words words_of(const std::string& kind, std::uint64_t number) {
  const Tag tag{.step = static_cast<std::int64_t>(number)};
  if (kind == "ready") return {.say = Say::ready, .tag = tag, .number = number, .bytes = 8};
  if (kind == "same_ready") return {.say = Say::ready, .tag = tag, .number = 1, .bytes = 8};
  if (kind == "unready") {
    return {.say = number % 2 == 0 ? Say::ready : Say::unready, .tag = tag, .number = number / 2};
  }
  if (kind == "offers") return {.say = Say::offer, .tag = tag, .number = number, .bytes = 1};
  if (kind == "empty_offers") return {.say = Say::offer, .tag = tag, .number = 1};
  if (kind == "large_offers") {
    return {.say = Say::offer, .tag = tag, .number = number, .bytes = kInlineBytes};
  }
  if (kind == "memories") return {.say = Say::memory, .number = number % 0xffff'ffffU, .bytes = 8};
  if (kind == "withdrawals" || kind == "unread") {
    return {.say = number % 2 == 0 ? Say::offer : Say::withdraw, .tag = tag, .number = number / 2};
  }
  if (kind == "alive") return {};
  throw std::invalid_argument("no such kind: " + kind);
}

// --- over TCP ------------------------------------------------------------------------------------

struct Head {
  Words words;
  FrameCode body = {};
  FrameCode head = {};
};

bool hear_all(int socket, void* into, std::size_t bytes) {
  return wait_for(socket, POLLIN) &&
         ::recv(socket, into, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

bool say_all(int socket, const void* data, std::size_t bytes) {
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

/// A greeting that has come, its text of `bytes` bytes, or nothing.
bool hear_greeting(int socket, Head& head, std::vector<std::byte>& text) {
  if (!hear_all(socket, &head, sizeof(head)) || head.words.follows > 1024) return false;
  text.resize(head.words.follows);
  return hear_all(socket, text.data(), text.size());
}

/// Keys of a connection over which both ends have proved who they are.
std::optional<SessionKeys> meet(Job& job, int socket) {
  if (!wait_for(socket, POLLOUT)) return std::nullopt;
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
  Head head;
  std::vector<std::byte> text;
  if (!hear_greeting(socket, head, text)) return std::nullopt;
  const auto nonce = nonce_of(head.words, text);
  if (!nonce) return std::nullopt;
  Meeting meeting = job.meeting(*nonce, "-");
  meeting.asks = head.words.number != 0;
  Greeting greeting = hello(job.token, meeting);
  greeting.words.follows = static_cast<std::uint32_t>(greeting.text.size());
  const Head own{.words = greeting.words};
  ++job.generation;
  if (!say_all(socket, &own, sizeof(own)) ||
      !say_all(socket, greeting.text.data(), greeting.text.size()) ||
      !hear_greeting(socket, head, text) || head.words.say != Say::welcome) {
    return std::nullopt;
  }
  ++job.meetings;
  return session_keys(job.token, meeting);
}

void flood_stream(Job& job, const StreamAddress& address) {
  const Descriptor socket = connect_stream(address);
  const auto keys = socket ? meet(job, socket.get()) : std::nullopt;
  if (!keys) return std::this_thread::sleep_for(std::chrono::milliseconds(1));
  FrameSeal seal(keys->caller, false);
  std::vector<Head> batch(kBatchBytes / sizeof(Head));
  if (job.kind == "broken") {
    say_all(socket.get(), batch.data(), sizeof(Head));  // with codes of zeros
    job.count(sizeof(Head));
    char byte = 0;
    while (wait_for(socket.get(), POLLIN) && ::recv(socket.get(), &byte, 1, 0) > 0) continue;
    return;
  }
  for (std::uint64_t number = 0; job.goes_on();) {
    for (Head& head : batch) {
      head.words = words_of(job.kind, number++);
      seal.begin(FrameSeal::Part::text);
      head.body = seal.end();
      seal.begin(FrameSeal::Part::head);
      seal.add(std::as_bytes(std::span(&head.words, 1)));
      seal.add(head.body);
      head.head = seal.end();
      seal.next();
      job.count(sizeof(head));
    }
    if (!say_all(socket.get(), batch.data(), batch.size() * sizeof(Head))) return;
  }
}

// --- inside a host -------------------------------------------------------------------------------

/// Says it, whatever the other end waits for; false where there is none any more.
bool say(const PacketSocket& socket, const Words& words, std::span<const std::byte> data,
         int descriptor) {
  for (;;) {
    const PacketResult result = socket.send(words, data, descriptor);
    if (result != PacketResult::later) return result == PacketResult::done;
    if (!wait_for(socket.descriptor(), POLLOUT)) return false;
  }
}

bool hear(const PacketSocket& socket, Words& words, std::vector<std::byte>& text) {
  Descriptor descriptor;
  return wait_for(socket.descriptor(), POLLIN) &&
         socket.receive(words, text, descriptor) == PacketResult::done;
}

void flood_packets(Job& job, const std::string& name) {
  const PacketSocket socket = PacketSocket::connect(name);
  Words words;
  std::vector<std::byte> text;
  const auto nonce = socket && hear(socket, words, text) ? nonce_of(words, text) : std::nullopt;
  if (!nonce) return std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const Greeting greeting = hello(job.token, job.meeting(*nonce, reach_of_shared_memory()));
  ++job.generation;
  if (!say(socket, greeting.words, greeting.text, -1) || !hear(socket, words, text)) return;
  ++job.meetings;
  if (job.kind == "broken") {
    job.count(sizeof(Words));
    say(socket, {.magic = 1}, {}, -1);
    while (hear(socket, words, text)) continue;
    return;
  }
  const std::vector<std::byte> data(kInlineBytes);
  const SharedMemory memory(4096);
  for (std::uint64_t number = 0; job.goes_on(); ++number) {
    const Words next = words_of(job.kind, number);
    const bool has_data = next.say == Say::offer;
    const std::span<const std::byte> follows(data.data(), has_data ? next.bytes : 0);
    const int descriptor = next.say == Say::memory ? memory.descriptor() : -1;
    if (!say(socket, next, follows, descriptor)) return;
    job.count(sizeof(next) + follows.size());
    while (job.kind != "unread" && socket.has_news()) {
      if (!hear(socket, words, text) || words.say == Say::bye) return;
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
    job.count(sizeof(Words));
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 8) {
    std::cerr << "usage: hostile_peer KIND TOKEN RANK WORKER GENERATION SECONDS PLACE\n";
    return 2;
  }
  Job job{.kind = words[1],
          .token = words[2],
          .rank = std::stoull(words[3]),
          .worker = std::stoull(words[4]),
          .limit = Clock::now() + std::chrono::milliseconds(std::stoll(words[6]) * 1000),
          .generation = std::stoull(words[5])};
  std::string name = words[7];
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
  std::cout << "{\"meetings\": " << job.meetings << ", \"said\": " << job.said
            << ", \"bytes\": " << job.bytes << ", \"generation\": " << job.generation << "}\n";
  return 0;
}
