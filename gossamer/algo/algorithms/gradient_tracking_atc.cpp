// Gradient tracking that adapts then combines (Aug-DGM, Xu et al. 2015; NEXT, Di Lorenzo and
// Scutari 2016): y^k = W (y^{k−1} + g^k − g^{k−1}), x^{k+1} = W (x^k + d(y^k)), with y^{−1} =
// g^{−1} = 0, both with the W of the step. The workers' y add up to the sum of their gradients. The
// tracker travels first, see Note [Two stages], so that the step is made with what all neighbours
// know by now; larger learning rates stay stable than with gradient_tracking. State: y and the
// gradient before. Traffic: two payloads one after the other, both on the critical path.
#include <vector>

#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/kernels/mix_only.h"

namespace gossamer {

template <class T>
double gradient_tracking_atc_prepare(const PassArgs<T>& args, const Optimizer&) {
  const std::span<T> y = args.pattern_state[0];
  const std::span<T> before = args.pattern_state[1];
  const bool has_gradient = !args.g.empty();
  const auto scale = static_cast<T>(args.numbers.grad_scale);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const T g = has_gradient ? scale * args.g[i] : T{0};
    y[i] += g - before[i];
    before[i] = g;
  }
  return 0;
}

template <class T>
double gradient_tracking_atc_middle(const PassArgs<T>& args, const Optimizer& optimizer) {
  const std::span<T> y = args.pattern_state[0];
  mix_only<T>({.x = y}, args.mixes[0], args.pool);
  PassArgs<T> follows = args;
  follows.g = y;
  follows.numbers.grad_scale = 1;  // it is in y
  atc_prepare<T>(follows, optimizer);
  return 0;
}

template double gradient_tracking_atc_prepare<float>(const PassArgs<float>&, const Optimizer&);
template double gradient_tracking_atc_prepare<double>(const PassArgs<double>&, const Optimizer&);
template double gradient_tracking_atc_middle<float>(const PassArgs<float>&, const Optimizer&);
template double gradient_tracking_atc_middle<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
