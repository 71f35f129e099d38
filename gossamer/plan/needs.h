#pragma once
/// needs_of(): what all-reduce, gossip and local steps ask of the links, and from which rate on
/// each is enough.

#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/model/workload.h"
#include "gossamer/plan/candidate.h"

namespace gossamer {

struct Need {
  MethodSpec candidate;
  double sent_bytes = 0;    ///< per step and host, the direction with more, mean over the rounds
  double over_compute = 0;  ///< time of these bytes / mean compute time: γ of all-reduce, else ωγ
  double step_s = 0;        ///< by the recursion (model/max_plus.h)
  double exposed_s = 0;     ///< the part of it in which workers wait for others
  /// Of the slowest link, with all links scaled alike: the least rate at which a step takes at most
  /// kEnough times as long as on links without a limit. Infinite where no rate is enough.
  double enough_bytes_per_s = 0;
};

inline constexpr double kEnough = 1.05;

/// The hierarchical all-reduce, AER, and the average over all in every fourth step, each in fp32,
/// bf16 and int8. Empty where no link has a limit or there is one host. Throws
/// std::invalid_argument for a cluster or workload that makes no sense.
std::vector<Need> needs_of(const ClusterSpec& cluster, const Workload& workload);

}  // namespace gossamer
