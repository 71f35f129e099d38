#include "gossamer/algo/optimizers/optimizers.h"
#include "gossamer/kernels/mix_sgd.h"

namespace gossamer {

template <class T>
double sgd_pass(const PassArgs<T>& args, const Mix<T>& mix, std::span<const T> g) {
  const StepNumbers& now = args.numbers;
  const Hyper& hyper = now.hyper;
  return mix_sgd<T>(
      {args.x, args.out, g}, mix,
      {.lr = hyper.lr, .weight_decay = hyper.weight_decay, .grad_scale = now.grad_scale},
      args.pool);
}

template double sgd_pass<float>(const PassArgs<float>&, const Mix<float>&, std::span<const float>);
template double sgd_pass<double>(const PassArgs<double>&, const Mix<double>&,
                                 std::span<const double>);

}  // namespace gossamer
