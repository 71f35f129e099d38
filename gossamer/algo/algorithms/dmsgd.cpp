// DmSGD that mixes both (Yu et al. 2019): m ← β m + g, x ← W (x − α m), m ← W m: atc that averages
// the optimizer's momentum, too; with Adam its first moment, while the second one stays local.
// State: none of its own. Traffic: two payloads, on the critical path. DmSGD that mixes x only is
// atc with momentum.
#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/kernels/mix_only.h"

namespace gossamer {

template <class T>
double dmsgd_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  mix_only<T>({.x = args.optimizer_state[0]}, args.mixes[1], args.pool);
  return atc_combine<T>(args, optimizer);
}

template double dmsgd_combine<float>(const PassArgs<float>&, const Optimizer&);
template double dmsgd_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
