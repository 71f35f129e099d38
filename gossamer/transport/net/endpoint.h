#pragma once
/// Endpoint: where a worker can be reached, as it tells the others.

#include <cstdint>
#include <string>

#include "gossamer/transport/net/stream_socket.h"

namespace gossamer {

struct Endpoint {
  std::string reach;  ///< see reach_of_shared_memory(); "-" for none
  std::string name;   ///< on its host
  StreamAddress streams;
  std::uint64_t generation = 0;
  bool tls = false;  ///< its streams are over TLS
};

/// With "-" in place of what it has not.
Endpoint with_dashes(Endpoint endpoint);
/// A line without ends of lines, and back; fields that are missing are left empty.
std::string to_text(const Endpoint& endpoint);
Endpoint endpoint_of(const std::string& text);

/// Throws std::invalid_argument where worker `rank` and worker `peer` have no way to each other.
void check_way(int rank, const Endpoint& own, int peer, const Endpoint& other);
/// Whether the two can share memory.
bool share_memory(const Endpoint& own, const Endpoint& other);

}  // namespace gossamer
