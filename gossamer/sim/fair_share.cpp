#include "gossamer/sim/fair_share.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace gossamer::sim {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
// Shares that differ by rounding only are one level: else equal links would take a turn each.
constexpr double kSameLevel = 1 + 1e-12;

}  // namespace

void FairShare::solve(std::span<const double> capacities, std::span<FairFlow> flows) {
  links_.clear();
  for (double capacity : capacities) links_.push_back({.left = capacity});
  const auto link = [&](int index) -> Link& { return links_[static_cast<std::size_t>(index)]; };
  for (const FairFlow& flow : flows) {
    ++link(flow.first).flows;
    ++link(flow.second).flows;
  }
  open_.resize(flows.size());
  std::iota(open_.begin(), open_.end(), 0);
  while (!open_.empty()) {
    double level = kNoLimit;
    for (Link& each : links_) {
      each.share = each.flows > 0 ? each.left / each.flows : kNoLimit;
      level = std::min(level, each.share);
    }
    std::erase_if(open_, [&](int index) {
      FairFlow& flow = flows[static_cast<std::size_t>(index)];
      Link& first = link(flow.first);
      Link& second = link(flow.second);
      if (std::min(first.share, second.share) > level * kSameLevel) return false;
      flow.rate = level;
      for (Link* each : {&first, &second}) {
        --each->flows;
        if (level < kNoLimit) each->left = std::max(0.0, each->left - level);
      }
      return true;
    });
  }
}

}  // namespace gossamer::sim
