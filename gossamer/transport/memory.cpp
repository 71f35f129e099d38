#include "gossamer/transport/memory.h"

namespace gossamer {

Copier copier_of(const Owner& owner, Lends lends) {
  switch (lends) {
    case Lends::nothing:
      return Copier::transport;
    case Lends::any_memory:
      return owner ? Copier::nobody : Copier::transport;
    case Lends::shared_memory:
      return owner.shared() ? Copier::nobody : Copier::sender;
  }
  __builtin_unreachable();
}

std::shared_ptr<const SharedMemory> shared_memory_for(Lends lends, std::size_t bytes) {
  if (lends != Lends::shared_memory) return nullptr;
  return std::make_shared<const SharedMemory>(bytes);
}

}  // namespace gossamer
