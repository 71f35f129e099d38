#pragma once
/// Transport between processes of one host, over shared memory.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gossamer/transport/transport.h"

namespace gossamer {

struct NetOptions {
  int rank = 0;
  int workers = 1;
  /// A secret of the job, the same for all its workers; whoever does not know it is not let in.
  std::string token;
  /// Gives everybody's words by rank in exchange for this worker's; called once, may block.
  std::function<std::vector<std::string>(const std::string& mine)> share;
  /// A peer of which nothing has been heard for so long costs the requests with it.
  std::chrono::duration<double> longest_silence = std::chrono::seconds(30);
};

/// Workers of one user on one host connect when they first talk to each other, over sockets without
/// a name in any file system; payloads lie in shared memory, where their receiver reads them. One
/// that has an owner in SharedMemory is read where it is, any other one is copied once by its
/// sender. A thread hears what peers say; a peer that ends, closes or falls silent costs the
/// requests with it, and no others.
///
/// Throws std::invalid_argument for ranks out of range and for workers that `share` finds on
/// another host, IoError where the system has no such sockets or memory.
std::unique_ptr<Transport> make_net_transport(const NetOptions& options);

/// What is the same for all processes that can reach each other over shared memory, and for no
/// others: those of one user, one start of one machine, and one network namespace. Empty where the
/// system has no shared memory.
std::string reach_of_shared_memory();

}  // namespace gossamer
