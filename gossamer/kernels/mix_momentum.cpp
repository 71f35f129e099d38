#include "gossamer/kernels/mix_momentum.h"

#include "gossamer/kernels/checks.h"
#include "gossamer/kernels/parallel_pass.h"

namespace gossamer {

template <class T>
double mix_momentum(const MomentumBuffers<T>& buffers, const Mix<T>& mix, const MomentumStep& step,
                    WorkerPool* pool) {
  require_length("mix_momentum", "g", buffers.g.size(), buffers.x.size());
  require_length("mix_momentum", "buf", buffers.buf.size(), buffers.x.size());
  const MixArgs<T> args = mix_args("mix_momentum", buffers.x, buffers.out, mix);
  const MomentumArgs<T> momentum{.g = buffers.g.data(),
                                 .buf = buffers.buf.data(),
                                 .grad_scale = static_cast<T>(step.grad_scale),
                                 .minus_lr = static_cast<T>(-step.lr),
                                 .momentum = static_cast<T>(step.momentum),
                                 .one_minus_dampening = static_cast<T>(1 - step.dampening),
                                 .weight_decay = static_cast<T>(step.weight_decay),
                                 .nesterov = step.nesterov,
                                 .first_step = step.first_step};
  const auto pass = active_kernels<T>().mix_momentum;
  return parallel_pass(pool, buffers.x.size(),
                       [&](Range range) { return pass(range, args, momentum); });
}

template double mix_momentum(const MomentumBuffers<float>&, const Mix<float>&, const MomentumStep&,
                             WorkerPool*);
template double mix_momentum(const MomentumBuffers<double>&, const Mix<double>&,
                             const MomentumStep&, WorkerPool*);

}  // namespace gossamer
