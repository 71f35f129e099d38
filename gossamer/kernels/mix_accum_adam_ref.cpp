#include <cmath>

#include "gossamer/kernels/ref.h"

namespace gossamer::ref {
namespace {

/// The accumulator after this step's gradient; stored in all but the last step of a period.
template <class T>
T accumulated(const AccumAdamArgs<T>& step, std::size_t i, T g) {
  switch (step.phase) {
    case AccumPhase::only:
    case AccumPhase::first:
      return step.inverse_period * g;
    case AccumPhase::middle:
    case AccumPhase::last:
      return std::fma(step.inverse_period, g, step.b[i]);
  }
  __builtin_unreachable();
}

}  // namespace

template <class T>
double mix_accum_adam(Range range, const MixArgs<T>& mix, const AccumAdamArgs<T>& step) {
  const AdamArgs<T>& adam = step.adam;
  const bool absorbs = step.phase == AccumPhase::last || step.phase == AccumPhase::only;
  Lanes distance;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const T x = mix.x[i];
    const T mixed = mixed_at(mix, i);
    T g = adam.grad_scale * adam.g[i];
    if (adam.coupled_decay != 0) g = std::fma(adam.coupled_decay, x, g);
    const T m = adam.beta1 * adam.m[i];
    const T v = adam.beta2 * adam.v[i];
    const T b = accumulated(step, i, g);
    if (absorbs) {
      const T absorbed = std::fma(adam.one_minus_beta1, b, m);
      adam.m[i] = absorbed;
      adam.v[i] = adam_second(adam, v, b, absorbed);
    } else {
      step.b[i] = b;
    }
    const T m_now = std::fma(adam.one_minus_beta1, g, m);
    const T root = std::sqrt(adam_second(adam, v, g, m_now));
    const T denominator = std::fma(root, adam.root_correction, adam.eps);
    const T quotient = m_now / denominator;
    const T base = adam.minus_decay != 0 ? std::fma(adam.minus_decay, x, mixed) : mixed;
    distance.add(x - mixed);
    mix.out[i] = std::fma(adam.minus_step, quotient, base);
  }
  return mix.measure_distance ? distance.fold() : 0;
}

template double mix_accum_adam(Range, const MixArgs<float>&, const AccumAdamArgs<float>&);
template double mix_accum_adam(Range, const MixArgs<double>&, const AccumAdamArgs<double>&);

}  // namespace gossamer::ref
