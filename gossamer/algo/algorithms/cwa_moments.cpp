// Combine while adapt that averages Adam's moments with the parameters: m and v of the neighbours
// travel with x, m ← W m, v ← W v, and the step follows what all have seen lately. With
// noise_share 1/n the workers' steps are those of Adam on the mean gradient, up to what has not
// been mixed yet. State: none of its own. Traffic: two or three payloads.
#include <algorithm>

#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/kernels/mix_only.h"

namespace gossamer {

template <class T>
double cwa_momentum_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  mix_only<T>({.x = args.optimizer_state[0]}, args.mixes[1], args.pool);
  return cwa_combine<T>(args, optimizer);
}

template <class T>
double cwa_moments_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  const std::span<T> second = args.optimizer_state[1];
  mix_only<T>({.x = second}, args.mixes[2], args.pool);
  // A coded v may come out a little below 0.
  for (T& v : second) v = std::max(v, T{0});
  return cwa_momentum_combine<T>(args, optimizer);
}

template double cwa_momentum_combine<float>(const PassArgs<float>&, const Optimizer&);
template double cwa_momentum_combine<double>(const PassArgs<double>&, const Optimizer&);
template double cwa_moments_combine<float>(const PassArgs<float>&, const Optimizer&);
template double cwa_moments_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
