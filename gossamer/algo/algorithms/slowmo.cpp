// SlowMo (Wang et al. 2020): steps of atc, and in every outer_every-th round, which is a global
// average x̄, a step of an outer momentum from where the phase began, φ: with moved = x̄ − φ,
// δ ← β δ + η moved, φ ← φ + δ, x ← φ. Its authors write u ← β u − moved/lr and φ ← φ − η lr u; δ
// is −η lr u while lr stays, and goes on with the distance that was covered when lr changes. With β
// = 0 and η = 1 nothing is left of it but the average. State: φ, which starts as x, and δ. Traffic:
// one payload, on the critical path of the rounds that mix.
#include "gossamer/algo/algorithms/algorithms.h"

namespace gossamer {

template <class T>
double slowmo_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  const double distance = atc_combine<T>(args, optimizer);
  const Hyper& hyper = args.numbers.hyper;
  if (!has_outer_step(hyper, args.numbers.round)) return distance;
  const std::span<T> anchor = args.pattern_state[0];
  const std::span<T> velocity = args.pattern_state[1];
  const auto beta = static_cast<T>(hyper.outer_momentum);
  const auto eta = static_cast<T>(hyper.outer_lr);
  for (std::size_t i = 0; i < args.x.size(); ++i) {
    const T moved = args.x[i] - anchor[i];
    const T carried = beta * velocity[i];
    velocity[i] = carried + eta * moved;
    args.x[i] += (eta - 1) * moved + carried;  // φ + δ, and exactly x̄ with β = 0, η = 1
    anchor[i] = args.x[i];
  }
  return distance;
}

template double slowmo_combine<float>(const PassArgs<float>&, const Optimizer&);
template double slowmo_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
