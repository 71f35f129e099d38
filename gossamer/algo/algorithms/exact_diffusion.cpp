// Exact-Diffusion = D² = NIDS (Yuan et al., Tang et al. 2018): ψ^k = x^k + d^k,
// φ^k = ψ^k + x^k − ψ^{k−1}, x^{k+1} = W φ^k, with ψ^{−1} = x⁰. Kept is what is added, x^k −
// ψ^{k−1}, which is 0 at the start and adds up to 0 over the workers, and ψ^k while φ^k travels.
// The two-point form with gradients drifts when the learning rate changes; this one does not.
// State: one vector. Traffic: one payload, on the critical path as with atc.
#include "gossamer/algo/algorithms/algorithms.h"

namespace gossamer {

template <class T>
double exact_diffusion_prepare(const PassArgs<T>& args, const Optimizer& optimizer) {
  atc_prepare<T>(args, optimizer);  // x holds ψ
  const std::span<T> correction = args.pattern_state[0];
  for (std::size_t i = 0; i < args.x.size(); ++i) {
    const T psi = args.x[i];
    args.x[i] = psi + correction[i];
    correction[i] = psi;
  }
  return 0;
}

template <class T>
double exact_diffusion_combine(const PassArgs<T>& args, const Optimizer& optimizer) {
  const double distance = atc_combine<T>(args, optimizer);
  const std::span<T> psi = args.pattern_state[0];
  for (std::size_t i = 0; i < args.x.size(); ++i) psi[i] = args.x[i] - psi[i];
  return distance;
}

template double exact_diffusion_prepare<float>(const PassArgs<float>&, const Optimizer&);
template double exact_diffusion_prepare<double>(const PassArgs<double>&, const Optimizer&);
template double exact_diffusion_combine<float>(const PassArgs<float>&, const Optimizer&);
template double exact_diffusion_combine<double>(const PassArgs<double>&, const Optimizer&);

}  // namespace gossamer
