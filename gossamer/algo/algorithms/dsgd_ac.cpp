// Decentralized SGD with adaptive consensus (Wang and Johansson 2026): x⁺ = x + γ (W x − x) + d.
// γ = Hyper::consensus in (0, 1] is set before every step; its authors take (lr/largest lr)^p,
// which keeps the workers apart when the learning rate falls, and find flatter minima. With γ = 1
// it is cwa. State: none. Traffic: one payload during forward and backward, as with cwa.
#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/algo/algorithms/partial_mix.h"

namespace gossamer {

template <class T>
double dsgd_ac_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  const PartialMix<T> part(args.mixes[0], args.numbers.hyper.consensus);
  return part.whole_distance(optimizer.pass<T>()(args, part.mix(), args.g));
}

template double dsgd_ac_combine<float>(const PassArgs<float>&, const Optimizer&);
template double dsgd_ac_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
