#pragma once
/// LateBoard: exchanges with neighbours for whom nobody waits.

#include <cstdint>
#include <vector>

#include "gossamer/sim/exchanges.h"

namespace gossamer::sim {

/// Does what the engine does with late = skip: an edge carries the next payload of a bucket only
/// once the one before has been taken, else it is left out; an update takes of each neighbour the
/// newest payload that has come, and goes on without it if that came more than `staleness` of its
/// own steps ago.
class LateBoard {
 public:
  LateBoard(const SimMethod& method, const Workload& workload, const HostShape& shape,
            Network& network, Exchanges::OnMessage on_message);

  void send(SimTime now, int worker, int bucket, std::int64_t step);
  void arrived(SimTime now, TransferId id);
  /// How many neighbours the update of a worker's step goes on without.
  int take(int worker, int bucket, std::int64_t step);

 private:
  struct Edge {
    bool is_under_way = false;
    bool has_newer = false;
    std::int64_t since = -1;  ///< the receiver's step that took the newest; −1: none came
  };
  Edge& edge(int number, int bucket);

  const Workload& workload_;
  const std::int64_t staleness_;
  Network& network_;
  ScriptBook book_;
  Exchanges::OnMessage on_message_;
  std::vector<Edge> edges_;  ///< by edge and bucket
};

}  // namespace gossamer::sim
