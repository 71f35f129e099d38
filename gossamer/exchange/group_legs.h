#pragma once
/// What a group's hosts have to move, leg after leg: its plans without the single messages.

#include <cstdint>
#include <vector>

#include "gossamer/base/dtype.h"
#include "gossamer/exchange/plan.h"

namespace gossamer {

/// One host's part in a leg. Messages of a leg are under way together; in a host each pair of
/// workers has a rate of its own.
struct HostLeg {
  std::int64_t sent_bytes = 0;  ///< to other hosts
  std::int64_t received_bytes = 0;
  int sent_messages = 0;
  int received_messages = 0;
  int link_phases = 0;             ///< one after the other, with messages between hosts
  std::int64_t inside_bytes = 0;   ///< all that its workers send each other
  std::int64_t longest_bytes = 0;  ///< inside: the sum over the phases of the largest message
  int inside_phases = 0;
  bool operator==(const HostLeg&) const = default;
};

/// By host of the group.
using Leg = std::vector<HostLeg>;

/// Note [Legs]: phases that follow one another with the same peers are one leg, as those of a ring:
/// what they move flows without a pause where all have as much to move. A group of `members` on
/// each of its hosts depends on nothing else. Hosts with as many members are alike but for how
/// shards are rounded, by less than 16 elements per message: in groups of more than 256 workers the
/// first of them stands for all. Cost: the plans of all others.
std::vector<Leg> group_legs(const std::vector<int>& members, std::int64_t elements, DType dtype,
                            const PlanOptions& options);

}  // namespace gossamer
