#include "gossamer/algo/optimizers/optimizers.h"
#include "gossamer/kernels/mix_accum_adam.h"

namespace gossamer {
namespace {

template <class T>
double accum_adam(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g,
                  bool decoupled) {
  const StepNumbers& now = args.numbers;
  const Hyper& hyper = now.hyper;
  return mix_accum_adam<T>({args.x, args.out, g, args.optimizer_state[0], args.optimizer_state[1],
                            args.optimizer_state[2]},
                           mix,
                           {.lr = hyper.lr,
                            .beta1 = hyper.beta1,
                            .beta2 = hyper.beta2,
                            .eps = hyper.eps,
                            .noise_share = hyper.noise_share,
                            .weight_decay = hyper.weight_decay,
                            .decoupled = decoupled,
                            .t = now.t,
                            .period = hyper.accumulate,
                            .grad_scale = now.grad_scale},
                           args.pool);
}

}  // namespace

template <class T>
double accum_adam_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g) {
  return accum_adam(args, mix, g, false);
}

template <class T>
double accum_adamw_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g) {
  return accum_adam(args, mix, g, true);
}

template double accum_adam_pass<float>(const PassArgs<float>&, const Mix<float>&,
                                       std::span<const float>);
template double accum_adam_pass<double>(const PassArgs<double>&, const Mix<double>&,
                                        std::span<const double>);
template double accum_adamw_pass<float>(const PassArgs<float>&, const Mix<float>&,
                                        std::span<const float>);
template double accum_adamw_pass<double>(const PassArgs<double>&, const Mix<double>&,
                                         std::span<const double>);

}  // namespace gossamer
