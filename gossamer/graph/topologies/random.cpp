#include <vector>

#include "gossamer/base/rng.h"
#include "gossamer/graph/topologies/topologies.h"
#include "gossamer/graph/weights.h"

namespace gossamer {
namespace {

Neighbours random_graph(int workers, std::uint64_t seed, std::int64_t t) {
  Rng rng(seed, static_cast<std::uint64_t>(t));
  Neighbours neighbours(static_cast<std::size_t>(workers));
  for (int i = 0; i < workers; ++i) {
    for (int j = i + 1; j < workers; ++j) {
      if (rng.uniform() >= 0.5) continue;
      neighbours[static_cast<std::size_t>(i)].push_back(j);
      neighbours[static_cast<std::size_t>(j)].push_back(i);
    }
  }
  return neighbours;
}

}  // namespace

Schedule make_random(const TopologyArgs& args) {
  const int n = args.shape.workers();
  return {.name = "random",
          .shape = args.shape,
          .period = 0,
          .round = [n, seed = args.seed](std::int64_t t, std::span<const AgreedLoss>) {
            return metropolis_round(random_graph(n, seed, t));
          }};
}

Schedule make_random_fixed(const TopologyArgs& args) {
  std::int64_t t = 0;
  Neighbours graph = random_graph(args.shape.workers(), args.seed, t);
  // Workers in two parts would never hear of each other.
  while (!is_connected(graph)) graph = random_graph(args.shape.workers(), args.seed, ++t);
  return periodic_schedule("random_fixed", args.shape, {metropolis_round(graph)});
}

}  // namespace gossamer
