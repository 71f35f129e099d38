#pragma once
/// Transport over process groups of torch: the portable way between processes.

#include <chrono>
#include <map>
#include <memory>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "gossamer/transport/transport.h"

namespace gossamer {

/// Where a peer is reached.
struct C10dEdgeGroup {
  c10::intrusive_ptr<::c10d::Backend> group;
  int peer_rank = 0;  ///< of the peer, in `group`
};

struct C10dOptions {
  int rank = 0;
  int workers = 1;
  /// By peer; a peer that is not here cannot be talked to. Best a group of its own for each edge.
  /// Both ends must have made their groups: there is no waiting for late ones here.
  std::map<int, C10dEdgeGroup> edges = {};
  /// How long the destructor waits for peers to take what was sent and to say good-bye.
  std::chrono::milliseconds linger = std::chrono::seconds(1);
};

/// The groups must carry bytes of CPU tensors point to point, in order per pair and tag, and take a
/// message that is shorter than the receive posted for it: Gloo does, NCCL does not and is refused.
/// The transport takes the groups over: nothing else may run on them, and they are closed with it.
/// It never serves in place and keeps copies of at most 4 MiB each way and edge, plus two threads
/// per edge. A send is done when its last byte is in such a copy; a peer that stands still or dies
/// costs the requests with it, and a worker that stands still for a while may go on later.
///
/// Throws std::invalid_argument for ranks out of range, for groups that lack the two ends, and for
/// backends that cannot do this.
std::unique_ptr<Transport> make_c10d_transport(const C10dOptions& options);

}  // namespace gossamer
