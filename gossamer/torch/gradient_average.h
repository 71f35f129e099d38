#pragma once
/// The AllReduce baseline of the PyTorch door: gradients are averaged over all workers while the
/// backward pass goes on, as DistributedDataParallel does.

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/engine/exchange_runner.h"

namespace gossamer {

struct GradientOptions {
  std::int64_t bucket_bytes = std::int64_t{4} << 20;  ///< unless one tensor is larger
  Codec codec = Codec::fp32;     ///< of what crosses hosts; what it leaves out is lost
  Recorder* recorder = nullptr;  ///< is told of exchanges and waits; null: nobody is
};

/// Note [Averaging in the backward]: gradients go into buckets in the reverse order of the tensors;
/// a bucket leaves as soon as all its gradients are there. When the backward pass ends, the means
/// are put into `.grad`, so that whatever follows (clipping, unscaling, any optimizer) sees them,
/// and the pass returns. A tensor that a worker's pass does not reach counts as zero there; one
/// that no worker's reaches keeps what it has. All workers must run equally many passes.
class GradientAverage {
 public:
  /// The runner must outlive this;
  /// the tensors are leaves with floating-point elements, equal on all workers.
  GradientAverage(std::vector<at::Tensor> tensors, const GradientOptions& options,
                  ExchangeRunner& runner, HostShape shape, int rank);
  ~GradientAverage();
  GradientAverage(const GradientAverage&) = delete;
  GradientAverage& operator=(const GradientAverage&) = delete;

  /// Off: backward passes leave the gradients alone, for gradient accumulation.
  void set_enabled(bool enabled);
  /// A pass without a backward, for a worker that has no batch: what stands in `.grad` is averaged
  /// with the others', nothing counts as zero. Blocks as a backward pass does; refused within one.
  void pass_without_backward();
  /// Finished passes, which must be equally many on all workers.
  std::int64_t passes() const;
  /// Seconds that backward passes have waited for other workers so far.
  double exposed_s() const;
  /// Seconds in which gradients were under way while the backward went on.
  double hidden_s() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< shared with the hooks, which cannot be taken back
};

}  // namespace gossamer
