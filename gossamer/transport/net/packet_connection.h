#pragma once
/// PacketConnection: a packet socket with the frames that could not be sent yet.

#include <deque>
#include <memory>
#include <vector>

#include "gossamer/transport/net/handshake.h"
#include "gossamer/transport/net/packet_socket.h"

namespace gossamer {

/// Not for several threads at once.
class PacketConnection {
 public:
  PacketConnection() = default;
  /// One that `holds` keeps all frames but those of the handshake until release().
  explicit PacketConnection(PacketSocket socket, bool holds = false)
      : socket_(std::move(socket)), holds_(holds) {}

  explicit operator bool() const { return static_cast<bool>(socket_); }
  const PacketSocket& socket() const { return socket_; }
  /// Sends now, or as soon as the other end reads. With `memory`, gives its descriptor along.
  void send(const FrameHeader& header, std::span<const std::byte> data = {},
            const std::shared_ptr<const SharedMemory>& memory = nullptr);
  /// A frame of the handshake.
  void send(const HandshakeFrame& frame);
  /// What was held is sent, and nothing is held any more.
  void release();
  /// Writes what waits, as far as the other end reads.
  void flush();
  bool is_behind() const { return !holds_ && !waiting_.empty(); }
  Clock::time_point last_sent() const { return last_sent_; }
  /// More waits to be sent than an end that reads would leave.
  bool is_overfull() const;
  /// The other end is gone; the socket stays until reset.
  void set_ended() { ended_ = true; }
  bool has_ended() const { return ended_; }
  void reset();

 private:
  struct Packet {
    FrameHeader header;
    std::vector<std::byte> data;
    std::shared_ptr<const SharedMemory> memory;
  };

  PacketSocket socket_;
  std::deque<Packet> waiting_;
  std::size_t waiting_bytes_ = 0;
  Clock::time_point last_sent_ = {};
  bool holds_ = false;
  bool ended_ = false;
};

}  // namespace gossamer
