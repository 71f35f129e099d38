#pragma once
/// Gradients that are averaged while the backward pass goes on, before any optimizer's step: over
/// all workers, as DistributedDataParallel does, or by gossip with some of them.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gossamer/engine/exchange_runner.h"
#include "gossamer/engine/seating.h"
#include "gossamer/torch/tensors/gradient_options.h"

namespace gossamer {

/// Note [Averaging in the backward]: gradients go into buckets in the reverse order of the tensors;
/// a bucket leaves as soon as all its gradients are there. When the backward pass ends, the means
/// are put into `.grad`, so that whatever follows (clipping, unscaling, any optimizer) sees them,
/// and the pass returns. A tensor that a worker's pass does not reach counts as zero there; one
/// that no worker's reaches, of those in the mean, keeps what it has. A tensor that requires no
/// gradient when a pass begins does not travel in it: workers freeze and thaw alike. Sparse
/// gradients travel by rows, see Note [Means of rows], and stay sparse, in CPU memory; on a device
/// they are refused. See Note [Several averages in one pass], too.
///
/// Note [No gradient is stepped with alone]: a gradient may be there that no pass has averaged: it
/// was assigned, or accumulated with averaging off, or the step is made by a hook inside of the
/// pass. average_missed() finds it and averages before the step. That is collective, and all
/// workers find the same, as they run the same program. With every pass travels whether the number
/// of steps is even, so that a worker with more passes in a step than others is refused, not paired
/// with their next step.
class GradientAverage {
 public:
  /// The runner must live until stop(); the tensors are leaves with floating-point elements, equal
  /// on all workers, with those that are frozen meanwhile. Throws std::invalid_argument unless they
  /// are in one place: CPU memory, or a device (see Note [Gradients on a device]).
  GradientAverage(const std::vector<AveragedTensor>& tensors, const GradientOptions& options,
                  ExchangeRunner& runner, Seating seating);
  ~GradientAverage();
  GradientAverage(const GradientAverage&) = delete;
  GradientAverage& operator=(const GradientAverage&) = delete;

  /// The gradient of a stand-in has been written, in a backward pass; see Note [Stand-ins].
  void arrive(std::size_t tensor);
  /// Before this worker leaves: waits until the others have what it sent in passes that are done.
  void wait_until_given(Deadline deadline);
  /// From now on nothing is heard of passes, also of one that is under way. What that has launched
  /// stays in place until the destructor: a thread of the runner may look at it.
  void stop();
  /// Off: backward passes leave the gradients alone, for gradient accumulation.
  void set_enabled(bool enabled);
  /// Whether the gradients that are there are means over the workers, or made of such. Of those
  /// that were changed in place since a pass that is assumed.
  bool are_averaged() const;
  /// The tensors whose gradients are such, if all are that are there; and by another one before
  /// this.
  std::vector<at::Tensor> averaged() const;
  void take_as_averaged(const std::vector<at::Tensor>& tensors);
  /// Before a step: a pass without a backward unless are_averaged(). Collective.
  void average_missed();
  /// The step is done: what is in `.grad` is old.
  void end_step();
  /// A pass without a backward, for a worker that has no batch: what stands in `.grad` is averaged
  /// with the others', nothing counts as zero. Blocks as a backward pass does; a pass that is under
  /// way ends now.
  void pass_without_backward();
  /// Finished passes, which must be equally many on all workers.
  std::int64_t passes() const;
  /// Seconds that backward passes have waited for other workers so far.
  double exposed_s() const;
  /// Seconds in which gradients were under way while the backward went on.
  double hidden_s() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< shared with what a pass calls at its end
};

}  // namespace gossamer
