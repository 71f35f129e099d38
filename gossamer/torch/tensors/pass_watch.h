#pragma once
/// Tells a recorder where forward ends and where backward does.

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "gossamer/engine/recorder.h"
#include "gossamer/torch/tensors/arrivals.h"

namespace gossamer {

/// Note [Where forward ends]: nobody says when a backward pass begins, but its first gradient is
/// there soon after: until then it was forward, with the loading of the batch, and from then until
/// the pass returns it is backward. A step may have several passes. What follows the last one until
/// the engine steps (clipping, an optimizer's own step) counts as update.
class PassWatch {
 public:
  /// Hooks that are set into the same tensors later are called later. The recorder must outlive
  /// this.
  PassWatch(std::vector<at::Tensor> tensors, Recorder& recorder);

  /// The worker is about to step: what it did last. Forward, if no pass has been heard of.
  void begin_update();
  /// The step is done: also hears of tensors that have been made to require gradients since.
  void end_update();

 private:
  struct State;
  std::shared_ptr<State> state_;  ///< shared with what a pass calls at its end
  Arrivals arrivals_;
};

}  // namespace gossamer
