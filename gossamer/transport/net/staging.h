#pragma once
/// Staging: shared memory for payloads that do not lie in any.

#include <cstddef>
#include <memory>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/net/net_operation.h"

namespace gossamer {

/// A place in shared memory, free again when `keeps` is gone.
struct StagedBlock {
  std::shared_ptr<const SharedMemory> memory;
  std::byte* data = nullptr;
  std::shared_ptr<const void> keeps;
};

/// Blocks of sizes of powers of two, used again and again. May be called from any thread; blocks
/// outlive it.
class Staging {
 public:
  Staging();
  /// Room for at least `bytes` bytes; throws IoError when the system gives none.
  StagedBlock take(std::size_t bytes);

 private:
  struct Pool;
  std::shared_ptr<Pool> pool_;
};

/// Where peers of this host can read a payload. Copies what they cannot.
NetPayload place(Staging& staging, std::span<const std::byte> payload, const Owner& owner);

}  // namespace gossamer
