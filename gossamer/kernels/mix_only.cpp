#include "gossamer/kernels/mix_only.h"

#include "gossamer/kernels/checks.h"
#include "gossamer/kernels/parallel_pass.h"

namespace gossamer {

template <class T>
double mix_only(const MixBuffers<T>& buffers, const Mix<T>& mix, WorkerPool* pool) {
  const MixArgs<T> args = mix_args("mix_only", buffers.x, buffers.out, mix);
  const auto pass = active_kernels<T>().mix_only;
  return parallel_pass(pool, buffers.x.size(), [&](Range range) { return pass(range, args); });
}

template double mix_only(const MixBuffers<float>&, const Mix<float>&, WorkerPool*);
template double mix_only(const MixBuffers<double>&, const Mix<double>&, WorkerPool*);

}  // namespace gossamer
