#pragma once
/// Transport between processes: over shared memory inside a host, over TCP between hosts.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gossamer/transport/transport.h"

namespace gossamer {

struct NetOptions {
  int rank = 0;
  int workers = 1;
  /// A secret of the job, the same for all its workers; without it nobody is let in.
  std::string token;
  /// Gives the endpoints of all workers by rank in exchange for this worker's; called once, may
  /// block. A worker that comes back gets the last ones of the others. Empty for one that has not
  /// come yet: it counts as lost until it comes, of a later generation.
  std::function<std::vector<std::string>(const std::string& mine)> share;
  /// The address of an interface, in numbers, for workers that cannot share memory; empty: none.
  std::string address = {};
  /// Whether workers of one host share memory; else they use streams as between hosts.
  bool share_memory = true;
  /// Whether streams are encrypted and authenticated by TLS 1.3, with a key that the token gives;
  /// the same for all workers. See Note [A key instead of certificates].
  bool tls = false;
  /// Whether payloads over streams without TLS are authenticated (AES-GMAC), as headers always are,
  /// instead of having a checksum (CRC-32C): then they arrive as they were sent or not at all,
  /// whoever is on the way. It suffices that one of two workers wants it.
  bool authenticates = false;
  /// How often a worker of this rank has been there before; see Note [Generations].
  std::uint64_t generation = 0;
  /// A peer that has sent nothing for so long costs the requests with it.
  std::chrono::duration<double> longest_silence = std::chrono::seconds(30);
  /// But not where this worker may not go on by may_go_on() with this number: then it waits.
  /// Without a number it always costs them.
  std::optional<int> least_heard = {};
};

/// Workers connect when they first talk to each other. Those of one user on one host use sockets
/// without a name in any file system; payloads lie in shared memory, where their receiver reads
/// them: one that has an owner in SharedMemory is read where it is, any other one is copied once by
/// its sender. Others use TCP, from the payload's memory to the receiver's; both ends prove that
/// they know the token, and nothing is encrypted, unless with `tls` all that goes over TCP. A
/// thread handles the frames of peers; a peer that ends, closes or falls silent costs the requests
/// with it, and no others.
///
/// Note [Generations]: a connection that has ended is not made again, whoever ended it: by close(),
/// by the end of the peer, or by the system because nothing has been acknowledged for 15 min. Both
/// workers may live on, but nothing more is exchanged between them until one of them comes back as
/// another generation: with the same rank, a higher `generation` and a new transport. It connects
/// to all others at once and tells them where it can be reached now. To these it is another peer:
/// requests with the former one fail ("the peer restarted"), no frame of the former one is handled
/// any more, requests that are posted later go to the new one, whatever has been closed before. A
/// lower generation than the known one is not let in. A shorter interruption only costs the
/// requests whose deadline passes; what is left goes on when it is over.
///
/// Throws std::invalid_argument for ranks out of range, for workers that cannot reach each other
/// and for those of which only some have tls; IoError where the system has no such sockets or
/// memory.
std::unique_ptr<Transport> make_net_transport(const NetOptions& options);

/// What is the same for all processes that can reach each other over shared memory, and for no
/// others: those of one user, one start of one machine, and one network namespace. Empty where the
/// system has no shared memory.
std::string reach_of_shared_memory();

}  // namespace gossamer
