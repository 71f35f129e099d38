#include <cmath>

#include "gossamer/kernels/ref.h"

namespace gossamer::ref {

template <class T>
double mix_sgd(Range range, const MixArgs<T>& mix, const SgdArgs<T>& step) {
  Lanes distance;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const T x = mix.x[i];
    const T mixed = mixed_at(mix, i);
    T g = step.grad_scale * step.g[i];
    if (step.weight_decay != 0) g = std::fma(step.weight_decay, x, g);
    distance.add(x - mixed);
    mix.out[i] = std::fma(step.minus_lr, g, mixed);
  }
  return mix.measure_distance ? distance.fold() : 0;
}

template double mix_sgd(Range, const MixArgs<float>&, const SgdArgs<float>&);
template double mix_sgd(Range, const MixArgs<double>&, const SgdArgs<double>&);

}  // namespace gossamer::ref
