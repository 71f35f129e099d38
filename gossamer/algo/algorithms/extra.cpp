// EXTRA (Shi et al. 2015): x¹ = W x⁰ + d⁰, x^{k+2} = (I + W) x^{k+1} − ½ (I + W) x^k + d^{k+1} −
// d^k. Kept as the sum y^k = ½ Σ_{t<k} (W − I) x^t, with which x^{k+1} = W x^k + d^k + y^k: that
// stays right when the learning rate changes, and x travels during forward and backward as with
// cwa. The workers' y add up to 0. State: y. Traffic: one payload.
#include <vector>

#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/kernels/mix_only.h"

namespace gossamer {

template <class T>
double extra_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  const Mix<T>& w = args.mixes[0];
  const std::span<T> y = args.pattern_state[0];
  std::vector<Source<T>> halves;
  for (const Source<T>& source : w.sources) halves.push_back({source.data, source.weight / 2});

  // y ← y + ½ (W x − x)
  halves.push_back({args.x.data(), (w.self_weight - 1) / 2});
  const double quarter = mix_only<T>({.x = y}, {1, halves, w.measure_distance}, args.pool);
  // x ← W x + d + the y before = ½ (x + W x) + d + the new y
  halves.back() = {y.data(), 1};
  optimizer.pass<T>()(args, {(1 + w.self_weight) / 2, halves}, args.g);
  return 4 * quarter;
}

template double extra_combine<float>(const PassArgs<float>&, const Optimizer&);
template double extra_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
