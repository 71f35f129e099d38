#include "gossamer/algo/optimizers/optimizers.h"
#include "gossamer/kernels/mix_momentum.h"

namespace gossamer {

template <class T>
double momentum_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g) {
  const StepNumbers& now = args.numbers;
  const Hyper& hyper = now.hyper;
  return mix_momentum<T>({args.x, args.out, g, args.optimizer_state[0]}, mix,
                         {.lr = hyper.lr,
                          .momentum = hyper.momentum,
                          .dampening = hyper.dampening,
                          .weight_decay = hyper.weight_decay,
                          .nesterov = hyper.nesterov,
                          .first_step = now.t == 1,
                          .grad_scale = now.grad_scale},
                         args.pool);
}

template double momentum_pass<float>(const PassArgs<float>&, const Mix<float>&,
                                     std::span<const float>);
template double momentum_pass<double>(const PassArgs<double>&, const Mix<double>&,
                                      std::span<const double>);

}  // namespace gossamer
