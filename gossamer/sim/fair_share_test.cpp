#include "gossamer/sim/fair_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gossamer/base/rng.h"

namespace gossamer::sim {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

TEST(FairShare, TheHandWorkedCase) {
  // Link 0 (rate 10) carries a, b; link 1 (rate 2) carries b; link 2 (rate 100) carries a.
  std::vector<FairFlow> flows{{0, 2}, {0, 1}};
  FairShare().solve(std::vector<double>{10, 2, 100}, flows);
  EXPECT_DOUBLE_EQ(flows[1].rate, 2);
  EXPECT_DOUBLE_EQ(flows[0].rate, 8);  // a takes what b cannot use
}

TEST(FairShare, NoLimitAndNoCapacity) {
  std::vector<FairFlow> flows{{0, 0}, {0, 1}, {2, 0}};
  FairShare().solve(std::vector<double>{kNoLimit, 0, 3}, flows);
  EXPECT_EQ(flows[0].rate, kNoLimit);
  EXPECT_EQ(flows[1].rate, 0);
  EXPECT_EQ(flows[2].rate, 3);
}

// The definition: rates are max-min fair if no link is overfull and every flow crosses a full link
// on which nobody has more than it.
TEST(FairShare, EveryFlowHasABottleneck) {
  FairShare share;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const int links = 2 + static_cast<int>(rng.below(12));
    std::vector<double> capacities;
    for (int k = 0; k < links; ++k) capacities.push_back(1 + std::floor(rng.uniform() * 4));
    std::vector<FairFlow> flows(1 + rng.below(40));
    for (FairFlow& flow : flows) {
      flow.first = static_cast<int>(rng.below(static_cast<std::uint64_t>(links)));
      flow.second = static_cast<int>(rng.below(static_cast<std::uint64_t>(links - 1)));
      if (flow.second >= flow.first) ++flow.second;
    }
    share.solve(capacities, flows);
    std::vector<double> used(capacities.size(), 0);
    std::vector<double> largest(capacities.size(), 0);
    for (const FairFlow& flow : flows) {
      for (int link : {flow.first, flow.second}) {
        const auto at = static_cast<std::size_t>(link);
        used[at] += flow.rate;
        largest[at] = std::max(largest[at], flow.rate);
      }
    }
    for (std::size_t k = 0; k < used.size(); ++k) {
      EXPECT_LE(used[k], capacities[k] * (1 + 1e-9)) << "seed " << seed;
    }
    for (const FairFlow& flow : flows) {
      const auto is_bottleneck = [&](int link) {
        const auto at = static_cast<std::size_t>(link);
        return used[at] >= capacities[at] * (1 - 1e-9) && flow.rate >= largest[at] * (1 - 1e-9);
      };
      EXPECT_TRUE(is_bottleneck(flow.first) || is_bottleneck(flow.second)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace gossamer::sim
