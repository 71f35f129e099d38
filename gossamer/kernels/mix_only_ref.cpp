#include <cmath>

#include "gossamer/kernels/ref.h"

namespace gossamer::ref {

template <class T>
T mixed_at(const MixArgs<T>& mix, std::size_t i) {
  T mixed = static_cast<T>(mix.self_weight) * mix.x[i];
  for (std::size_t k = 0; k < mix.source_count; ++k) {
    mixed = std::fma(static_cast<T>(mix.sources[k].weight), mix.sources[k].data[i], mixed);
  }
  return mixed;
}

template <class T>
double mix_only(Range range, const MixArgs<T>& mix) {
  Lanes distance;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const T mixed = mixed_at(mix, i);
    distance.add(mix.x[i] - mixed);
    mix.out[i] = mixed;
  }
  return mix.measure_distance ? distance.fold() : 0;
}

template float mixed_at(const MixArgs<float>&, std::size_t);
template double mixed_at(const MixArgs<double>&, std::size_t);
template double mix_only(Range, const MixArgs<float>&);
template double mix_only(Range, const MixArgs<double>&);

}  // namespace gossamer::ref
