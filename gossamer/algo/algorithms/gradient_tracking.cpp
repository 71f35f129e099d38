// Gradient tracking (DIGing, Nedić et al. 2017): y^k = W y^{k−1} + g^k − g^{k−1}, x^{k+1} = W x^k +
// d(y^k), with y^{−1} = g^{−1} = 0. The workers' y add up to the sum of their gradients, so that
// each of them follows the mean gradient; on time-varying W, too. Both payloads travel during
// forward and backward. State: y and the gradient before. Traffic: two payloads.
#include <vector>

#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/kernels/mix_only.h"

namespace gossamer {

template <class T>
double gradient_tracking_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  const Mix<T>& arrived = args.mixes[1];
  const std::span<T> y = args.pattern_state[0];
  const std::span<T> before = args.pattern_state[1];
  const bool has_gradient = !args.g.empty();
  const double scale = args.numbers.grad_scale;
  std::vector<Source<T>> sources(arrived.sources.begin(), arrived.sources.end());
  if (has_gradient) sources.push_back({args.g.data(), scale});
  sources.push_back({before.data(), -1});
  mix_only<T>({.x = y}, {arrived.self_weight, sources}, args.pool);
  for (std::size_t i = 0; i < before.size(); ++i) {
    before[i] = has_gradient ? static_cast<T>(scale) * args.g[i] : T{0};
  }
  PassArgs<T> follows = args;
  follows.numbers.grad_scale = 1;  // it is in y
  return optimizer.pass<T>()(follows, args.mixes[0], y);
}

template double gradient_tracking_combine<float>(const PassArgs<float>&, const Optimizer&);
template double gradient_tracking_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
