#pragma once
/// How a replica that has come back catches up with the others, where their means are settled.

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "gossamer/engine/collectives.h"

namespace gossamer {

/// What has to be equal on all replicas before a step, in the same order on all of them.
struct ReplicaState {
  std::function<std::vector<at::Tensor>()> tensors = nullptr;
  /// After the values of another one were written to what `tensors` gave here.
  std::function<void(const std::vector<at::Tensor>&)> took = nullptr;
};

/// Note [A replica that comes back]: a worker that comes back has the state of another one, but of
/// some steps before. In its first step its exchanges are with itself, and those of the others are
/// among them. But all settle their means, so all see that there is a new one: it takes the state
/// of the first of those that were there, and its own gradient does not count. From then on it is a
/// replica like the others. They wait for it in that one step.
struct ReplicaShare {
  bool counts = true;  ///< whether the gradient of this worker is in the mean
  double scale = 1;    ///< of the mean over all that are there, new ones with zeros among them
};

/// Within Collectives::settle(), of means that were over those of `before`. Throws
/// std::runtime_error where a new replica has other tensors than those that were there.
ReplicaShare catch_up(Collectives& collectives, const Seating& before, bool is_new,
                      const ReplicaState& state);

}  // namespace gossamer
