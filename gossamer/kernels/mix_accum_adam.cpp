#include "gossamer/kernels/mix_accum_adam.h"

#include "gossamer/kernels/adam_args.h"
#include "gossamer/kernels/checks.h"
#include "gossamer/kernels/parallel_pass.h"

namespace gossamer {
namespace {

AccumPhase phase_of(const AccumAdamStep& step) {
  if (step.period == 1) return AccumPhase::only;
  const std::int64_t position = step.t % step.period;
  if (position == 0) return AccumPhase::last;
  return position == 1 ? AccumPhase::first : AccumPhase::middle;
}

}  // namespace

template <class T>
double mix_accum_adam(const AccumAdamBuffers<T>& buffers, const Mix<T>& mix,
                      const AccumAdamStep& step, WorkerPool* pool) {
  const std::size_t count = buffers.x.size();
  require_length("mix_accum_adam", "g", buffers.g.size(), count);
  require_length("mix_accum_adam", "m", buffers.m.size(), count);
  require_length("mix_accum_adam", "v", buffers.v.size(), count);
  require_positive("mix_accum_adam", "t", step.t);
  require_positive("mix_accum_adam", "period", step.period);
  if (step.period > 1) require_length("mix_accum_adam", "b", buffers.b.size(), count);
  const MixArgs<T> args = mix_args("mix_accum_adam", buffers.x, buffers.out, mix);
  AccumAdamArgs<T> accum{.adam = adam_args<T>(step, 1 + (step.t - 1) / step.period),
                         .b = buffers.b.data(),
                         .inverse_period = static_cast<T>(1.0 / static_cast<double>(step.period)),
                         .phase = phase_of(step)};
  accum.adam.g = buffers.g.data();
  accum.adam.m = buffers.m.data();
  accum.adam.v = buffers.v.data();
  const auto pass = active_kernels<T>().mix_accum_adam;
  return parallel_pass(pool, count, [&](Range range) { return pass(range, args, accum); });
}

template double mix_accum_adam(const AccumAdamBuffers<float>&, const Mix<float>&,
                               const AccumAdamStep&, WorkerPool*);
template double mix_accum_adam(const AccumAdamBuffers<double>&, const Mix<double>&,
                               const AccumAdamStep&, WorkerPool*);

}  // namespace gossamer
