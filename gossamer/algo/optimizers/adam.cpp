#include "gossamer/algo/optimizers/optimizers.h"
#include "gossamer/kernels/mix_adam.h"

namespace gossamer {
namespace {

template <class T>
double adam(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g, bool decoupled) {
  const StepNumbers& now = args.numbers;
  const Hyper& hyper = now.hyper;
  return mix_adam<T>({args.x, args.out, g, args.optimizer_state[0], args.optimizer_state[1]}, mix,
                     {.lr = hyper.lr,
                      .beta1 = hyper.beta1,
                      .beta2 = hyper.beta2,
                      .eps = hyper.eps,
                      .noise_share = hyper.noise_share,
                      .weight_decay = hyper.weight_decay,
                      .decoupled = decoupled,
                      .t = now.t,
                      .grad_scale = now.grad_scale},
                     args.pool);
}

}  // namespace

template <class T>
double adam_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g) {
  return adam(args, mix, g, false);
}

template <class T>
double adamw_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g) {
  return adam(args, mix, g, true);
}

template double adam_pass<float>(const PassArgs<float>&, const Mix<float>&, std::span<const float>);
template double adam_pass<double>(const PassArgs<double>&, const Mix<double>&,
                                  std::span<const double>);
template double adamw_pass<float>(const PassArgs<float>&, const Mix<float>&,
                                  std::span<const float>);
template double adamw_pass<double>(const PassArgs<double>&, const Mix<double>&,
                                   std::span<const double>);

}  // namespace gossamer
