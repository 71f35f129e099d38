#pragma once
/// Connection: a packet socket with what could not be written yet.

#include <deque>
#include <memory>
#include <vector>

#include "gossamer/transport/net/packet_socket.h"

namespace gossamer {

/// Not for several threads at once.
class Connection {
 public:
  Connection() = default;
  explicit Connection(PacketSocket socket) : socket_(std::move(socket)) {}

  explicit operator bool() const { return static_cast<bool>(socket_); }
  const PacketSocket& socket() const { return socket_; }
  /// Says it now, or as soon as the other end reads. With `memory`, gives its descriptor along.
  void say(const Words& words, std::span<const std::byte> data = {},
           const std::shared_ptr<const SharedMemory>& memory = nullptr);
  /// Writes what waits, as far as the other end reads.
  void flush();
  bool is_behind() const { return !waiting_.empty(); }
  Clock::time_point last_said() const { return last_said_; }
  /// The other end is gone; the socket stays until reset.
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
  Clock::time_point last_said_ = {};
  bool ended_ = false;
};

}  // namespace gossamer
