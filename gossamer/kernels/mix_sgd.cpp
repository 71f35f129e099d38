#include "gossamer/kernels/mix_sgd.h"

#include "gossamer/kernels/checks.h"
#include "gossamer/kernels/parallel_pass.h"

namespace gossamer {

template <class T>
double mix_sgd(const SgdBuffers<T>& buffers, const Mix<T>& mix, const SgdStep& step,
               WorkerPool* pool) {
  require_length("mix_sgd", "g", buffers.g.size(), buffers.x.size());
  const MixArgs<T> args = mix_args("mix_sgd", buffers.x, buffers.out, mix);
  const SgdArgs<T> sgd{.g = buffers.g.data(),
                       .grad_scale = static_cast<T>(step.grad_scale),
                       .minus_lr = static_cast<T>(-step.lr),
                       .weight_decay = static_cast<T>(step.weight_decay)};
  const auto pass = active_kernels<T>().mix_sgd;
  return parallel_pass(pool, buffers.x.size(), [&](Range range) { return pass(range, args, sgd); });
}

template double mix_sgd(const SgdBuffers<float>&, const Mix<float>&, const SgdStep&, WorkerPool*);
template double mix_sgd(const SgdBuffers<double>&, const Mix<double>&, const SgdStep&, WorkerPool*);

}  // namespace gossamer
