#pragma once
/// AnnouncedMemories: the shared memories that a peer of this host knows by number.

#include <cstdint>
#include <map>
#include <memory>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/net/packet_connection.h"

namespace gossamer {

class AnnouncedMemories {
 public:
  /// The number of a memory. The peer is told of a new one, and of those that are gone, over the
  /// connection.
  std::uint32_t number_of(const std::shared_ptr<const SharedMemory>& memory,
                          PacketConnection& connection);

 private:
  std::uint32_t last_ = 0;
  std::map<std::weak_ptr<const SharedMemory>, std::uint32_t, std::owner_less<>> numbers_;
};

}  // namespace gossamer
