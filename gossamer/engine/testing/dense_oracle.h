#pragma once
/// The recursions of FACTS as plain loops over dense matrices in double precision: the oracle of
/// the engine's tests. Shares no code with the rules it checks.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gossamer/algo/pass.h"
#include "gossamer/graph/schedule.h"

namespace gossamer::reference {

using Matrix = std::vector<std::vector<double>>;  ///< rows: workers

/// g(worker, step from 0, x of the worker).
using Gradient =
    std::function<std::vector<double>(int worker, std::int64_t step, const std::vector<double>& x)>;

struct Run {
  std::string pattern;
  std::string optimizer;
  std::vector<Hyper> groups;
  std::vector<int> group_of;              ///< by element
  std::vector<std::int64_t> round_shift;  ///< by element: staggering
  double clip_norm = 0;
  Schedule schedule;
};

/// All workers' parameters after `steps` steps from `x`, which holds one row per worker.
Matrix run(const Run& run, Matrix x, const Gradient& gradient, std::int64_t steps);

}  // namespace gossamer::reference
