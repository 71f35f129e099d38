#include <cmath>

#include "gossamer/kernels/ref.h"

namespace gossamer::ref {

template <class T>
double mix_momentum(Range range, const MixArgs<T>& mix, const MomentumArgs<T>& step) {
  Lanes distance;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const T x = mix.x[i];
    const T mixed = mixed_at(mix, i);
    T g = step.grad_scale * step.g[i];
    if (step.weight_decay != 0) g = std::fma(step.weight_decay, x, g);
    T& buf = step.buf[i];
    buf = step.first_step ? g : std::fma(step.one_minus_dampening, g, step.momentum * buf);
    const T direction = step.nesterov ? std::fma(step.momentum, buf, g) : buf;
    distance.add(x - mixed);
    mix.out[i] = std::fma(step.minus_lr, direction, mixed);
  }
  return mix.measure_distance ? distance.fold() : 0;
}

template double mix_momentum(Range, const MixArgs<float>&, const MomentumArgs<float>&);
template double mix_momentum(Range, const MixArgs<double>&, const MomentumArgs<double>&);

}  // namespace gossamer::ref
