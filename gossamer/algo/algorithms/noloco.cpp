// After NoLoCo (Kolehmainen et al. 2025): SlowMo without a global average. x and the slow weights
// φ are both mixed with the neighbours', x̂ = W (x + d), φ̂ = W φ, and every outer_every-th round
// makes the outer step δ ← β δ + η (x̂ − φ̂), φ ← φ̂ + δ, x ← φ. Its authors pull φ to φ̂ inside δ,
// with a factor of its own; here W does it. The rounds between are best local ones
// (with_local_steps); where they mix, φ is mixed along, so that x̂ − φ̂ always compares what went the
// same ways. With W = J it is slowmo. State: φ, which starts as x, and δ. Traffic: two payloads in
// rounds that mix.
#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/kernels/mix_only.h"

namespace gossamer {

template <class T>
double noloco_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  mix_only<T>({.x = args.pattern_state[0]}, args.mixes[1], args.pool);
  return slowmo_combine<T>(args, optimizer);
}

template double noloco_combine<float>(const PassArgs<float>&, const Optimizer&);
template double noloco_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
