// Stochastic gradient push (Assran et al. 2019; push-sum of Kempe et al. 2003, Nedić and Olshevsky
// 2016) on graphs whose A is column stochastic only, directed or changing: u ← A (u + d(g at x)),
// v ← A v, x = u/v, with v = 1 at the start. v follows from the schedule alone, so it is not sent:
// with w_ij = a_ij v_j/v_i⁺, whose rows sum to 1, x_i⁺ = Σ_j w_ij (x_j + d_j/v_j). These are the
// rounds of push_sum_rounds(), and v is StepNumbers::weight. Σ_i v_i x_i moves by the sum of the d;
// Σ_i v_i stays n. Where A is doubly stochastic, v is 1 and all of this is atc. Every optimizer's d
// is proportional to its learning rate. State: none. Traffic: one payload, as with atc.
#include "gossamer/algo/algorithms/algorithms.h"

namespace gossamer {

template <class T>
double push_sum_prepare(const PassArgs<T>& args, const Optimizer& optimizer) {
  PassArgs<T> scaled = args;
  scaled.numbers.hyper.lr /= args.numbers.weight;
  return atc_prepare<T>(scaled, optimizer);
}

template double push_sum_prepare<float>(const PassArgs<float>&, const Optimizer&);
template double push_sum_prepare<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
