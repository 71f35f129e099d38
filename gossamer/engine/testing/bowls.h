#pragma once
/// For tests: functions f_i(x) = ½ h_i ‖x − a_i‖² of unequal curvature and minimum, by worker, and
/// what minimises a sum of them.

#include <cmath>
#include <cstddef>
#include <vector>

#include "gossamer/base/index.h"

namespace gossamer::bowls {

inline double curvature(int rank) { return 0.5 + 0.5 * std::abs(std::sin(5. * rank + 1)); }
inline double center(int rank, int element) { return 3 * std::sin(7. * rank + 2. * element); }

/// g = ∇f_rank(x).
inline void set_gradient(int rank, const std::vector<double>& x, std::vector<double>& g) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    g[i] = curvature(rank) * (x[i] - center(rank, static_cast<int>(i)));
  }
}

/// An element of what minimises the sum of the f of these.
inline double optimum(const std::vector<int>& ranks, int element) {
  double top = 0;
  double bottom = 0;
  for (const int rank : ranks) {
    top += curvature(rank) * center(rank, element);
    bottom += curvature(rank);
  }
  return top / bottom;
}

}  // namespace gossamer::bowls
