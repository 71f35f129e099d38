#include "gossamer/graph/weights.h"

#include <algorithm>
#include <utility>

namespace gossamer {

bool is_connected(const Neighbours& neighbours) {
  std::vector<char> reached(neighbours.size(), 0);
  std::vector<int> next{0};
  reached[0] = 1;
  for (std::size_t k = 0; k < next.size(); ++k) {
    for (const int j : neighbours[static_cast<std::size_t>(next[k])]) {
      if (std::exchange(reached[static_cast<std::size_t>(j)], 1) == 0) next.push_back(j);
    }
  }
  return next.size() == neighbours.size();
}

Round metropolis_round(const Neighbours& neighbours) {
  std::vector<std::vector<Entry>> rows(neighbours.size());
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    double kept = 1;
    for (int j : neighbours[i]) {
      const std::size_t degree =
          std::max(neighbours[i].size(), neighbours[static_cast<std::size_t>(j)].size());
      const double weight = 1.0 / static_cast<double>(1 + degree);
      rows[i].push_back({j, weight});
      kept -= weight;
    }
    // Where the weights use everything up, what rounding leaves must not become a negative weight.
    rows[i].push_back({static_cast<int>(i), std::max(kept, 0.0)});
  }
  return sparse_round(static_cast<int>(neighbours.size()), std::move(rows));
}

Round circulant_round(int workers, std::span<const Entry> offsets) {
  std::vector<std::vector<Entry>> rows(static_cast<std::size_t>(workers));
  for (int i = 0; i < workers; ++i) {
    for (const Entry& entry : offsets) {
      const int sender = ((i + entry.worker) % workers + workers) % workers;
      rows[static_cast<std::size_t>(i)].push_back({sender, entry.weight});
    }
  }
  return sparse_round(workers, std::move(rows));
}

Sides near_square(int workers) {
  Sides sides{1, workers};
  for (int rows = 1; rows * rows <= workers; ++rows) {
    if (workers % rows == 0) sides = {rows, workers / rows};
  }
  return sides;
}

int ceil_log2(int n) {
  int tau = 0;
  while ((std::int64_t{1} << tau) < n) ++tau;
  return tau;
}

}  // namespace gossamer
