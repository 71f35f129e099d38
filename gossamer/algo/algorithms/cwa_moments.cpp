// Combine while adapt that averages Adam's moments with the parameters: m and v of the neighbours
// travel with x; m ← m + γ (W m − m), v likewise, and the step follows what all have seen lately.
// With noise_share near 1/n its second moment is about that of the mean gradient, which is what
// Adam under AllReduce divides by. γ = Hyper::consensus, as of dsgd_ac: since x is mixed as it was
// before the step, curvature drives workers apart that mix too strongly. For Adam on quadratics of
// curvature λ/√v, a mode that W scales by μ is stable while lr λ (1 − β₁) < (1 + μ)(1 + β₁ μ).
// State: none of its own. Traffic: three payloads.
#include <algorithm>

#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/algo/algorithms/partial_mix.h"
#include "gossamer/kernels/mix_only.h"

namespace gossamer {

template <class T>
double cwa_moments_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  const double gamma = args.numbers.hyper.consensus;
  const std::span<T> second = args.optimizer_state[1];
  mix_only<T>({.x = args.optimizer_state[0]}, PartialMix<T>(args.mixes[1], gamma).mix(), args.pool);
  mix_only<T>({.x = second}, PartialMix<T>(args.mixes[2], gamma).mix(), args.pool);
  for (T& v : second) v = std::max(v, T{0});  // coded, it may come out a little below
  const PartialMix<T> part(args.mixes[0], gamma);
  return part.whole_distance(optimizer.pass<T>()(args, part.mix(), args.g));
}

template double cwa_moments_combine<float>(const PassArgs<float>&, const Optimizer&);
template double cwa_moments_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
