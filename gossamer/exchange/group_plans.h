#pragma once
/// The ways in which a group of workers averages: one function each, all with the same result on
/// every member of the group, bit for bit.

#include <cstdint>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/exchange/plan.h"

namespace gossamer {

/// Everybody sends everything to everybody; sums in rank order.
Plan all_to_all_plan(const std::vector<int>& group, int worker, std::int64_t count);

/// Flat ring all-reduce in rank order: 2(R−1) phases, 2(R−1)/R of the payload sent per worker.
Plan ring_plan(const std::vector<int>& group, int worker, std::int64_t count);

/// Reduce-scatter inside each host, exchange of the own shard with the counterparts on the other
/// hosts, all-gather inside each host. Sends 2(G−1)/G payloads per host between G hosts, so exactly
/// one payload for two. Hosts may have different numbers of workers in the group.
/// With a codec, payloads between hosts are coded.
Plan hierarchical_plan(const std::vector<int>& group, const HostShape& shape, int worker,
                       std::int64_t count, const PlanOptions& options);

/// A half-open range of payload elements.
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};

/// Part `index` of `parts` of a range: nearly equal, cut at multiples of 16 elements (a cache line
/// of floats) from the range's beginning; the last parts of a short range may be empty.
ElementRange part_of(const ElementRange& whole, int index, int parts);

}  // namespace gossamer
