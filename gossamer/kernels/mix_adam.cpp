#include "gossamer/kernels/mix_adam.h"

#include "gossamer/kernels/adam_args.h"
#include "gossamer/kernels/checks.h"
#include "gossamer/kernels/parallel_pass.h"

namespace gossamer {

template <class T>
double mix_adam(const AdamBuffers<T>& buffers, const Mix<T>& mix, const AdamStep& step,
                WorkerPool* pool) {
  const std::size_t count = buffers.x.size();
  require_length("mix_adam", "g", buffers.g.size(), count);
  require_length("mix_adam", "m", buffers.m.size(), count);
  require_length("mix_adam", "v", buffers.v.size(), count);
  require_positive("mix_adam", "t", step.t);
  const MixArgs<T> args = mix_args("mix_adam", buffers.x, buffers.out, mix);
  AdamArgs<T> adam = adam_args<T>(step, step.t);
  adam.g = buffers.g.data();
  adam.m = buffers.m.data();
  adam.v = buffers.v.data();
  const auto pass = active_kernels<T>().mix_adam;
  return parallel_pass(pool, count, [&](Range range) { return pass(range, args, adam); });
}

template double mix_adam(const AdamBuffers<float>&, const Mix<float>&, const AdamStep&,
                         WorkerPool*);
template double mix_adam(const AdamBuffers<double>&, const Mix<double>&, const AdamStep&,
                         WorkerPool*);

}  // namespace gossamer
