#pragma once
/// Connection: a packet socket with what could not be said yet.

#include <deque>
#include <memory>
#include <vector>

#include "gossamer/transport/net/handshake.h"
#include "gossamer/transport/net/packet_socket.h"

namespace gossamer {

/// Not for several threads at once.
class Connection {
 public:
  Connection() = default;
  /// One that `holds` says greetings only, and all else once it is told to speak().
  explicit Connection(PacketSocket socket, bool holds = false)
      : socket_(std::move(socket)), holds_(holds) {}

  explicit operator bool() const { return static_cast<bool>(socket_); }
  const PacketSocket& socket() const { return socket_; }
  /// Says it now, or as soon as the other end reads. With `memory`, gives its descriptor along.
  void say(const Words& words, std::span<const std::byte> data = {},
           const std::shared_ptr<const SharedMemory>& memory = nullptr);
  void greet(const Greeting& greeting);
  void speak();
  /// Writes what waits, as far as the other end reads.
  void flush();
  bool is_behind() const { return !holds_ && !waiting_.empty(); }
  Clock::time_point last_said() const { return last_said_; }
  /// The other end is gone; the socket stays until reset.
  /// More waits to be said than an end that reads would leave.
  bool is_overfull() const;
  void set_ended() { ended_ = true; }
  bool has_ended() const { return ended_; }
  void reset();

 private:
  struct Packet {
    Words words;
    std::vector<std::byte> data;
    std::shared_ptr<const SharedMemory> memory;
  };

  PacketSocket socket_;
  std::deque<Packet> waiting_;
  std::size_t waiting_bytes_ = 0;
  Clock::time_point last_said_ = {};
  bool holds_ = false;
  bool ended_ = false;
};

}  // namespace gossamer
