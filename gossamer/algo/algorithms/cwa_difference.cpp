// Combine while adapt for parameters that something else steps while they travel:
// x⁺ = x + Σ_j w_ij (y_j − y_i) + d, with y the copy of x that was sent. Where nothing else has
// touched x in between, this is cwa. DESIGN: the difference form preserves the mean exactly.
#include <vector>

#include "gossamer/algo/algorithms/algorithms.h"

namespace gossamer {

template <class T>
double cwa_difference_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  const Mix<T>& arrived = args.mixes[0];
  std::vector<Source<T>> sources{{args.pattern_state[0].data(), arrived.self_weight - 1}};
  sources.insert(sources.end(), arrived.sources.begin(), arrived.sources.end());
  return optimizer.pass<T>()(args, {1, sources, arrived.measure_distance}, args.g);
}

template double cwa_difference_combine<float>(const PassArgs<float>&, const Optimizer&);
template double cwa_difference_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
