#pragma once
/// How a round mixes workers that lie one after the other in one memory.

#include <vector>

#include "gossamer/graph/round.h"

namespace gossamer {

/// Workers [begin, end) that take from the same distances with the same weights, so that one pass
/// over all of them does it: of a ring these are all but the first and the last.
struct Stretch {
  struct Term {
    int distance = 0;  ///< worker i takes from i + distance
    double weight = 0;
    bool operator==(const Term&) const = default;
  };

  int begin = 0;
  int end = 0;
  double self_weight = 1;
  std::vector<Term> terms;
};

/// The fewest stretches of a round that is not a partition.
std::vector<Stretch> stretches_of(const Round& round);

}  // namespace gossamer
