// EXTRA for parameters that something else steps while they travel: x⁺ = x + Σ_j w_ij (s_j − s_i) +
// d + y, y ← y + ½ Σ_j w_ij (s_j − s_i), with s the copy of x that was sent. Where nothing else has
// touched x in between, this is extra. State: s, y. Traffic: one payload.
#include <vector>

#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/kernels/mix_only.h"

namespace gossamer {

template <class T>
double extra_difference_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  const Mix<T>& w = args.mixes[0];
  const std::span<T> y = args.pattern_state[1];
  std::vector<Source<T>> halves;
  for (const Source<T>& source : w.sources) halves.push_back({source.data, source.weight / 2});
  halves.push_back({args.pattern_state[0].data(), (w.self_weight - 1) / 2});

  const double quarter = mix_only<T>({.x = y}, {1, halves, w.measure_distance}, args.pool);
  // x ← x + W s − s + d + the y before = x + ½ (W s − s) + d + the new y
  halves.push_back({y.data(), 1});
  optimizer.pass<T>()(args, {1, halves}, args.g);
  return 4 * quarter;
}

template double extra_difference_combine<float>(const PassArgs<float>&, const Optimizer&);
template double extra_difference_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
