#include "gossamer/transport/net/announced_memories.h"

namespace gossamer {

std::uint32_t AnnouncedMemories::number_of(const std::shared_ptr<const SharedMemory>& memory,
                                           PacketConnection& connection) {
  const auto known = numbers_.find(memory);
  if (known != numbers_.end()) return known->second;
  std::erase_if(numbers_, [&](const auto& entry) {
    if (!entry.first.expired()) return false;
    connection.send({.type = FrameType::forget, .number = entry.second});
    return true;
  });
  numbers_.emplace(memory, ++last_);
  connection.send({.type = FrameType::memory, .number = last_, .bytes = memory->size()}, {},
                  memory);
  return last_;
}

}  // namespace gossamer
