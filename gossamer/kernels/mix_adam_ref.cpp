#include <cmath>

#include "gossamer/kernels/ref.h"

namespace gossamer::ref {

template <class T>
double mix_adam(Range range, const MixArgs<T>& mix, const AdamArgs<T>& step) {
  Lanes distance;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const T x = mix.x[i];
    const T mixed = mixed_at(mix, i);
    T g = step.grad_scale * step.g[i];
    if (step.coupled_decay != 0) g = std::fma(step.coupled_decay, x, g);
    T& m = step.m[i];
    T& v = step.v[i];
    m = std::fma(step.one_minus_beta1, g, step.beta1 * m);
    v = adam_second(step, step.beta2 * v, g, m);
    const T root = std::sqrt(v);
    const T denominator = std::fma(root, step.root_correction, step.eps);
    const T base = step.minus_decay != 0 ? std::fma(step.minus_decay, x, mixed) : mixed;
    distance.add(x - mixed);
    mix.out[i] = std::fma(step.minus_step, m / denominator, base);
  }
  return mix.measure_distance ? distance.fold() : 0;
}

template double mix_adam(Range, const MixArgs<float>&, const AdamArgs<float>&);
template double mix_adam(Range, const MixArgs<double>&, const AdamArgs<double>&);

}  // namespace gossamer::ref
