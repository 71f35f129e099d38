#pragma once
/// Max-min fair rates of flows that cross two links each.

#include <span>
#include <vector>

namespace gossamer::sim {

/// Crosses links `first` and `second`, by index into the capacities.
struct FairFlow {
  int first = 0;
  int second = 0;
  double rate = 0;
};

/// Progressive filling: of all links, those with the least capacity per flow give each of their
/// flows that much; what is left is shared by the others in the same way. A class only to keep its
/// scratch memory.
class FairShare {
 public:
  /// Sets the rates. Capacities may be 0 or infinite; a flow over infinite links has an infinite
  /// rate. Cost: flows + links, times the number of different rates.
  void solve(std::span<const double> capacities, std::span<FairFlow> flows);

 private:
  struct Link {
    double left = 0;
    double share = 0;
    int flows = 0;
  };
  std::vector<Link> links_;
  std::vector<int> open_;  ///< flows without a rate yet
};

}  // namespace gossamer::sim
