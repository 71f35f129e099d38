#include "gossamer/transport/net/connection.h"

namespace gossamer {
namespace {

PacketResult write(const PacketSocket& socket, const Words& words, std::span<const std::byte> data,
                   const std::shared_ptr<const SharedMemory>& memory) {
  return socket.send(words, data, memory ? memory->descriptor() : -1);
}

}  // namespace

void Connection::say(const Words& words, std::span<const std::byte> data,
                     const std::shared_ptr<const SharedMemory>& memory) {
  if (!socket_ || ended_) return;
  last_said_ = Clock::now();
  if (waiting_.empty() && write(socket_, words, data, memory) != PacketResult::later) return;
  waiting_.push_back({words, {data.begin(), data.end()}, memory});
}

void Connection::flush() {
  while (!waiting_.empty()) {
    const Packet& next = waiting_.front();
    if (write(socket_, next.words, next.data, next.memory) == PacketResult::later) return;
    waiting_.pop_front();  // what can be written no more is noticed by whoever reads
  }
}

void Connection::reset() { *this = Connection(); }

}  // namespace gossamer
