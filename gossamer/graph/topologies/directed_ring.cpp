#include <array>

#include "gossamer/graph/topologies/topologies.h"
#include "gossamer/graph/weights.h"

namespace gossamer {

Schedule make_directed_ring(const TopologyArgs& args) {
  const int n = args.shape.workers();
  if (n <= 2) return periodic_schedule("directed_ring", args.shape, {complete_round(n)});
  const std::array<Entry, 2> offsets{{{0, 0.5}, {-1, 0.5}}};
  return periodic_schedule("directed_ring", args.shape, {circulant_round(n, offsets)});
}

}  // namespace gossamer
