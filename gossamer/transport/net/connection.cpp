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
  const bool may_be_said = !holds_ && waiting_.empty();
  if (may_be_said && write(socket_, words, data, memory) != PacketResult::later) return;
  waiting_.push_back({words, {data.begin(), data.end()}, memory});
  waiting_bytes_ += data.size();
}

bool Connection::is_overfull() const {
  return waiting_.size() > kMostOpen || waiting_bytes_ > kMostOpenBytes;
}

/// Nothing has been said before: there is room in the socket.
void Connection::greet(const Greeting& greeting) {
  write(socket_, greeting.words, greeting.text, nullptr);
  last_said_ = Clock::now();
}

void Connection::speak() {
  holds_ = false;
  flush();
}

void Connection::flush() {
  while (!holds_ && !waiting_.empty()) {
    const Packet& next = waiting_.front();
    if (write(socket_, next.words, next.data, next.memory) == PacketResult::later) return;
    waiting_bytes_ -= next.data.size();
    waiting_.pop_front();  // what can be written no more is noticed by whoever reads
  }
}

void Connection::reset() { *this = Connection(); }

}  // namespace gossamer
