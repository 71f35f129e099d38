// Gossip of gradients, with parameters that are mixed as in cwa: x ← W x while forward and backward
// run, then g ← W g as soon as there is a gradient, and x ← x + d(W g), with the W of the step for
// both. Where W averages over all workers it is AllReduce; in between, a worker's step follows the
// workers that W reaches, so its second moment has as little noise as theirs together. With
// rounds_per_step several rounds make up W (Lu and De Sa, 2021: DeTAG). Needs neither a momentum
// that travels nor smaller steps than AllReduce. State: the gradient as it was sent, then mixed.
// Traffic: two payloads, of which the gradients' leave bucket by bucket during the backward.
#include <algorithm>

#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/kernels/mix_only.h"

namespace gossamer {

template <class T>
double gradient_gossip_middle(const PassArgs<T>& args, const Optimizer&) {
  const std::span<T> sent = args.pattern_state[0];
  const auto scale = static_cast<T>(args.numbers.grad_scale);
  if (args.g.empty()) {
    std::ranges::fill(sent, T{0});
  } else {
    std::ranges::transform(args.g, sent.begin(), [scale](T g) { return scale * g; });
  }
  return mix_only<T>({.x = args.x}, args.mixes[0], args.pool);
}

template <class T>
double gradient_gossip_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  const std::span<T> g = args.pattern_state[0];
  Mix<T> mix = args.mixes[0];
  mix.measure_distance = false;  // the run's is that of the parameters
  mix_only<T>({.x = g}, mix, args.pool);
  PassArgs<T> step = args;
  step.numbers.grad_scale = 1;  // it was sent scaled
  optimizer.pass<T>()(step, Mix<T>{}, g);
  return 0;
}

template double gradient_gossip_middle<float>(const PassArgs<float>&, const Optimizer&);
template double gradient_gossip_middle<double>(const PassArgs<double>&, const Optimizer&);
template double gradient_gossip_combine<float>(const PassArgs<float>&, const Optimizer&);
template double gradient_gossip_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
