#pragma once
/// NetOperation: one send or receive of the transport net, and where its payload is.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gossamer/base/shared_memory.h"
#include "gossamer/transport/request_table.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

class Peer;

struct NetOperation {
  using Pointer = std::shared_ptr<NetOperation>;

  bool sending = false;
  int rank = 0;
  int peer = 0;
  std::shared_ptr<Peer> at = nullptr;  ///< the peer as it was when the operation was posted
  Tag tag;
  std::size_t bytes = 0;
  Deadline posted;
  Deadline deadline;
  Status::State state = Status::State::pending;
  std::exception_ptr error = nullptr;
  std::uint64_t number = 0;                 ///< under which both ends know it, once they do
  bool taken = false;                       ///< of a send: its receive is there
  bool lends = false;                       ///< of a send: done only when it comes back
  std::span<const std::byte> payload = {};  ///< of a send, where it is sent from
  std::byte* landing = nullptr;             ///< of a receive
  std::size_t landed = 0;                   ///< bytes of a receive
  Clock::time_point arrived = {};           ///< of a receive that is done
  std::span<const std::byte> content = {};  ///< of a receive that is done: where its bytes are
  std::shared_ptr<const SharedMapping> borrowed = nullptr;  ///< what content lies in, until back
};

/// Fails it at this moment.
inline void set_failed(NetOperation& operation, const Failure& failure) {
  operation.state = Status::State::failed;
  operation.error = failure_of(operation, failure, Clock::now());
}

/// Operations that have ended and of which nobody has been told yet.
using EndedOperations = std::vector<NetOperation::Pointer>;

/// Where the payload of a send is, and what keeps it there.
struct NetPayload {
  std::span<const std::byte> bytes;
  std::shared_ptr<const SharedMemory> memory = nullptr;
  std::shared_ptr<const void> keeps = nullptr;  ///< until peers are through with it
};

}  // namespace gossamer
