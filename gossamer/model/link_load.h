#pragma once
/// What the exchanges of a round put on the links of each host, counted from the plans.

#include <cstdint>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/base/dtype.h"
#include "gossamer/exchange/plan.h"
#include "gossamer/graph/schedule.h"

namespace gossamer {

/// A full Ethernet frame over what TCP, with timestamps, carries in it: bytes on the wire per byte
/// of payload.
inline constexpr double kEthernetOverhead = 1514.0 / 1448.0;

/// What is exchanged, and how.
struct ExchangedPayload {
  std::int64_t elements = 0;
  DType dtype = DType::f32;
  PlanOptions plan;
};

/// Bytes of payload that a host sends to other hosts, receives from them, and moves inside.
struct HostLoad {
  int host = 0;
  std::int64_t sent_bytes = 0;
  std::int64_t received_bytes = 0;
  std::int64_t inside_bytes = 0;
  bool operator==(const HostLoad&) const = default;
};

/// What a member waits for, leg after leg (exchange/group_legs.h); each pair of workers of a host
/// has its own rate.
struct Path {
  int link_phases = 0;            ///< one after the other, with messages between hosts
  int inside_phases = 0;          ///< in legs that stay inside
  std::int64_t inside_bytes = 0;  ///< there: Σ over the phases of the largest message
  std::int64_t pair_bytes = 0;    ///< of all legs: what goes from one member to one other
};

/// An exchange that can begin when all its members have launched it and that all of them wait for:
/// a group that averages, or one directed edge j → i of a round in sparse rows (j must not change
/// its payload before it is sent, so that it waits as well).
struct ExchangeLoad {
  std::vector<int> members;     ///< ascending
  int sender = -1;              ///< of an edge; −1: a group
  std::vector<HostLoad> hosts;  ///< those of the members, ascending
  Path path;                    ///< that of the member with the longest
};

/// The exchanges of one round, without those of workers that keep their own. The bytes are those of
/// the plans that compile() makes; those of groups of more than 256 workers follow Note [Legs].
/// Cost: linear in workers and edges, apart from compiling one group of each form.
std::vector<ExchangeLoad> exchange_loads(const Round& round, const HostShape& shape,
                                         const ExchangedPayload& payload);

/// What a host sends and receives per step, on average.
struct MeanLoad {
  double sent_bytes = 0;
  double received_bytes = 0;
};

/// By host, over the first `rounds` rounds of the schedule.
std::vector<MeanLoad> mean_loads(const Schedule& schedule, int rounds,
                                 const ExchangedPayload& payload);

/// Seconds that the busiest direction of a link needs for them.
double busiest_link_s(const ClusterSpec& cluster, const std::vector<MeanLoad>& loads);

/// By host, the sum over all exchanges of the round.
std::vector<HostLoad> host_loads(const Round& round, const HostShape& shape,
                                 const ExchangedPayload& payload);

}  // namespace gossamer
