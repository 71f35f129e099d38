// Adapt then combine: x⁺ = W (x + d(∇f(x))), the D-SGD of the lecture. The exchange is on the
// critical path: it needs the gradient and is needed by the next forward.
#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/kernels/mix_only.h"

namespace gossamer {

template <class T>
double atc_prepare(const PassArgs<T>& args, const Optimizer& optimizer) {
  PassArgs<T> in_place = args;
  in_place.out = {};
  return optimizer.pass<T>()(in_place, Mix<T>{}, args.g);
}

template <class T>
double atc_combine(const PassArgs<T>& args, const Optimizer&) {
  return mix_only<T>({.x = args.x}, args.mixes[0], args.pool);
}

template double atc_prepare<float>(const PassArgs<float>&, const Optimizer&);
template double atc_prepare<double>(const PassArgs<double>&, const Optimizer&);
template double atc_combine<float>(const PassArgs<float>&, const Optimizer&);
template double atc_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
