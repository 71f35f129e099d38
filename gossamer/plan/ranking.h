#pragma once
/// rank(): which way to train reaches the same loss soonest on a cluster, and why.

#include <string>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/plan/candidate.h"
#include "gossamer/plan/steps_ratio.h"
#include "gossamer/plan/workload_file.h"

namespace gossamer {

struct RankedCandidate {
  MethodSpec candidate;
  double step_s = 0;          ///< mean time of a step
  double exposed_s = 0;       ///< the part of it in which workers wait for others
  bool is_simulated = false;  ///< else by the recursion, which is up to a fifth below
  StepsRatio steps;
  double total_s = 0;  ///< steps of all-reduce · ratio · step_s
};

struct Ranking {
  /// By total_s, the best first; those whose steps nobody has measured come last, by step_s.
  std::vector<RankedCandidate> candidates;
  int slower = 0;                    ///< how many more were compared, all of them slower
  std::size_t recommended = 0;       ///< index of it
  std::vector<std::string> reasons;  ///< sentences: why this one
  std::vector<std::string> doubts;   ///< sentences: what the answer hangs on
};

struct RankingOptions {
  /// Within so much of the best time all-reduce is recommended: it changes nothing else.
  double too_close = 0.05;
  /// Within so much of the best time the simplest is.
  double alike = 0.01;
  int simulated = 10;  ///< how many of the best are simulated, where that is quick
  int wanted = 10;     ///< how many of the best are ranked; the others are known to be slower
  std::vector<MethodSpec> also = {};  ///< ranked beside what is compared anyway
};

/// All-reduce as PyTorch does it and hierarchically with each codec, and all topologies that can
/// serve the hosts, with codecs, local steps and global averages. The recursion (model/max_plus.h)
/// times all that may be among the best by what they compute and send; the best are simulated.
/// All-reduces are always ranked. Equal arguments give equal rankings. Throws
/// std::invalid_argument for a cluster or workload that makes no sense.
Ranking rank(const ClusterSpec& cluster, const Workload& workload, const Target& target,
             const RankingOptions& options = {});

/// What rank() compares.
std::vector<MethodSpec> candidates_for(const ClusterSpec& cluster);

}  // namespace gossamer
