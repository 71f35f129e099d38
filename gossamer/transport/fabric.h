#pragma once
/// Fabric: what the transports of one in-process cluster share.

#include <deque>
#include <memory>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/transport/edge.h"
#include "gossamer/transport/threads.h"
#include "gossamer/transport/wake_up.h"

namespace gossamer {

/// Edges between all workers, their wake-ups, and the emulated links if any. Locks: an edge's may
/// be held when the emulator's is taken, nothing else is nested. All functions may be called from
/// any thread.
class Fabric {
 public:
  Fabric(const ClusterSpec& cluster, const ThreadsOptions& options);

  int workers() const { return static_cast<int>(wake_ups_.size()); }
  WakeUp& wake_up(int rank) { return wake_ups_[static_cast<std::size_t>(rank)]; }
  Edge& edge(int from, int to);
  /// The edge that the operation is posted on.
  Edge& edge_of(const Operation& operation);
  /// Wakes both workers.
  void ring(int a, int b);
  /// Closes both directions between `rank` and `peer`.
  void close(int rank, int peer, const CloseReasons& seen_from_rank);

  std::vector<HostBytes> link_bytes();
  void set_link(int host, const LinkSpec& link);

 private:
  const HostShape shape_;
  std::deque<WakeUp> wake_ups_;
  std::deque<Edge> edges_;
  std::unique_ptr<LinkEmulator> emulator_;  // last: its thread uses the others
};

}  // namespace gossamer
