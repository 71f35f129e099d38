// Decentralized SGD with adaptive consensus (Wang and Johansson 2026): x⁺ = x + γ (W x − x) + d.
// γ = Hyper::consensus in (0, 1] is set before every step; its authors take (lr/largest lr)^p,
// which keeps the workers apart when the learning rate falls, and find flatter minima. With γ = 1
// it is cwa. State: none. Traffic: one payload during forward and backward, as with cwa.
#include <vector>

#include "gossamer/algo/algorithms/algorithms.h"

namespace gossamer {

template <class T>
double dsgd_ac_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  const Mix<T>& w = args.mixes[0];
  const double gamma = args.numbers.hyper.consensus;
  std::vector<Source<T>> sources(w.sources.begin(), w.sources.end());
  for (Source<T>& source : sources) source.weight *= gamma;
  const Mix<T> partly{1 - gamma + gamma * w.self_weight, sources, w.measure_distance};
  const double distance = optimizer.pass<T>()(args, partly, args.g);
  return gamma > 0 ? distance / (gamma * gamma) : 0;
}

template double dsgd_ac_combine<float>(const PassArgs<float>&, const Optimizer&);
template double dsgd_ac_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
