#pragma once
/// Transient iterations: after how many steps a decentralized method keeps up with parallel SGD.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gossamer/graph/schedule.h"

namespace gossamer {

enum class TransientProblem {
  least_squares,  ///< α_t = 1/(10 + t)
  logistic,       ///< regression, α_t = 20/(100 + t): its curvature is below ¼
};

/// A problem with d = 10 and one sample per worker and step, the case of the strongly convex
/// theory. A method has left its transient stage at the first recorded step from which on its MSE,
/// the mean over the trials, is at most `factor` times that of parallel SGD on the same samples,
/// for as long again. 200 steps are recorded of each run.
struct TransientSpec {
  Schedule schedule;
  std::string pattern = "atc";
  TransientProblem problem = TransientProblem::least_squares;
  double heterogeneity = 0;  ///< as in SyntheticSpec
  double factor = 2;
  std::int64_t most_steps = 1'000'000;
  int trials = 8;
  int threads = 2;
  std::uint64_t seed = 1;
};

/// Steps with the schedule's workers; none where most_steps are too few to tell. Throws
/// std::invalid_argument for what does not fit each other.
std::optional<std::int64_t> transient_steps(const TransientSpec& spec);

/// b of the least-squares line log y = a + b log x through positive points; NaN with fewer than
/// two.
double growth_exponent(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace gossamer
