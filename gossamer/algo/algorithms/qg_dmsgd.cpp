// Quasi-global momentum (Lin et al. 2021): u = β m + g, x' = W (x − α u), m ← (1 − μ) m + μ (x −
// x')/α; with Nesterov's the step is g + β u. The momentum follows how the mixed parameters move
// instead of the local gradients, which helps where the workers' data differ. μ = .1, as its
// authors have it. State: the optimizer's momentum, and x as it was. Traffic: one payload, on the
// critical path.
#include <algorithm>

#include "gossamer/algo/algorithms/algorithms.h"

namespace gossamer {
namespace {

constexpr double kFollows = 0.1;  // μ

}  // namespace

template <class T>
double qg_dmsgd_prepare(const PassArgs<T>& args, const Optimizer&) {
  const std::span<T> before = args.pattern_state[0];
  std::ranges::copy(args.x, before.begin());
  const Hyper& hyper = args.numbers.hyper;
  const auto scale = static_cast<T>(args.numbers.grad_scale);
  const auto beta = static_cast<T>(hyper.momentum);
  const auto fresh = static_cast<T>(1 - hyper.dampening);
  for (std::size_t i = 0; i < args.g.size(); ++i) {
    const T g = scale * args.g[i] + static_cast<T>(hyper.weight_decay) * args.x[i];
    const T u = beta * args.optimizer_state[0][i] + fresh * g;
    args.x[i] -= static_cast<T>(hyper.lr) * (hyper.nesterov ? g + beta * u : u);
  }
  return 0;
}

template <class T>
double qg_dmsgd_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  const double distance = atc_combine<T>(args, optimizer);
  const double lr = args.numbers.hyper.lr;
  if (args.g.empty() || lr == 0) return distance;  // nothing was stepped
  const std::span<T> before = args.pattern_state[0];
  const std::span<T> m = args.optimizer_state[0];
  for (std::size_t i = 0; i < m.size(); ++i) {
    m[i] = static_cast<T>(1 - kFollows) * m[i] +
           static_cast<T>(kFollows / lr) * (before[i] - args.x[i]);
  }
  return distance;
}

template double qg_dmsgd_prepare<float>(const PassArgs<float>&, const Optimizer&);
template double qg_dmsgd_prepare<double>(const PassArgs<double>&, const Optimizer&);
template double qg_dmsgd_combine<float>(const PassArgs<float>&, const Optimizer&);
template double qg_dmsgd_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
