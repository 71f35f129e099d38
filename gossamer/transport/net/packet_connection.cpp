#include "gossamer/transport/net/packet_connection.h"

namespace gossamer {
namespace {

PacketResult write(const PacketSocket& socket, const FrameHeader& header,
                   std::span<const std::byte> data,
                   const std::shared_ptr<const SharedMemory>& memory) {
  return socket.send(header, data, memory ? memory->descriptor() : -1);
}

}  // namespace

void PacketConnection::send(const FrameHeader& header, std::span<const std::byte> data,
                            const std::shared_ptr<const SharedMemory>& memory) {
  if (!socket_ || ended_) return;
  last_sent_ = Clock::now();
  const bool may_be_sent = !holds_ && waiting_.empty();
  if (may_be_sent && write(socket_, header, data, memory) != PacketResult::later) return;
  waiting_.push_back({header, {data.begin(), data.end()}, memory});
  waiting_bytes_ += data.size();
}

bool PacketConnection::is_overfull() const {
  return waiting_.size() > kMostOpen || waiting_bytes_ > kMostOpenBytes;
}

/// Nothing has been sent before: there is room in the socket.
void PacketConnection::send(const HandshakeFrame& frame) {
  write(socket_, frame.header, frame.text, nullptr);
  last_sent_ = Clock::now();
}

void PacketConnection::release() {
  holds_ = false;
  flush();
}

void PacketConnection::flush() {
  while (!holds_ && !waiting_.empty()) {
    const Packet& next = waiting_.front();
    if (write(socket_, next.header, next.data, next.memory) == PacketResult::later) return;
    waiting_bytes_ -= next.data.size();
    waiting_.pop_front();  // an end that is gone is noticed by the reads
  }
}

void PacketConnection::reset() { *this = PacketConnection(); }

}  // namespace gossamer
