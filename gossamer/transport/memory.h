#pragma once
/// Memory: where a vector is, what keeps it, and who may read it there.

#include <cstddef>
#include <memory>
#include <utility>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Where memory can be.
enum class Device { cpu };

/// The memory of a vector. It belongs to whoever made this value, but for what `owner` keeps: that
/// peers may read in place, as far as the transport lends it. Null: there is none.
struct Memory {
  void* data = nullptr;
  Owner owner = nullptr;
  Device device = Device::cpu;

  Memory(void* begin = nullptr, Owner keeps = nullptr, Device where = Device::cpu)
      : data(begin), owner(std::move(keeps)), device(where) {}
};

/// Note [Who copies]: a payload is read by peers where it is, if it has an owner that the transport
/// lends from. Where the transport lends from other memory than the payload's, the sender copies it
/// there, once for all peers. Else the transport copies it, for each peer.
enum class Copier { nobody, sender, transport };

Copier copier_of(const Owner& owner, Lends lends);

/// Memory that peers read in place; null where any memory that has an owner will do, or none.
/// Throws IoError when the system gives none.
std::shared_ptr<const SharedMemory> shared_memory_for(Lends lends, std::size_t bytes);

}  // namespace gossamer
