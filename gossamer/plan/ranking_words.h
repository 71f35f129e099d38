#pragma once
/// What a ranking says in words.

#include <cstddef>
#include <string>
#include <vector>

#include "gossamer/plan/ranking.h"

namespace gossamer {

/// The index of the best one that averages gradients.
std::size_t best_allreduce(const std::vector<RankedCandidate>& candidates);

/// Whether workers differ in speed by so much that skipping late ones may pay.
bool has_stragglers(const Workload& workload);

/// Sentences: why the recommended one.
std::vector<std::string> reasons_for(const Ranking& ranking, const Workload& workload,
                                     const Target& target);

/// Copies between devices and the memory of their hosts; seconds, of a step.
struct CopyCost {
  double copy_s = 0;     ///< of all parameters, one way
  double step_s = 0;     ///< by the model
  double without_s = 0;  ///< the same if parameters were in the hosts' memory
};

/// A sentence: whether they are what the step waits for.
std::string copies_reason(const CopyCost& cost);

/// Sentences: what the answer hangs on.
std::vector<std::string> doubts_about(const Ranking& ranking, const Workload& workload,
                                      const Target& target);

}  // namespace gossamer
