#pragma once
/// Tells, during a backward pass, which buckets have all their gradients.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "gossamer/torch/arrivals.h"
#include "gossamer/torch/flat_parameters.h"

namespace gossamer {

struct Model;
struct Batch;

/// The names of the parameters in the order in which backward() on this batch completes their
/// gradients; parameters that the loss does not depend on are missing. It is the same on every
/// worker. Costs one forward and backward pass, and leaves gradients and changed buffers in the
/// model: to be asked of one that is thrown away.
std::vector<std::string> completion_order(const Model& model, const Batch& batch);

/// Counts the gradients of the parameters of `flat` that arrive, by bucket. Only backward passes
/// between begin_backward() and finish_backward() count, so that the earlier micro-steps of
/// gradient accumulation pass unseen.
class GradientWatch {
 public:
  /// `ready` is called with the bucket's index, once per bucket and window, in the thread that
  /// runs the backward pass, in the order of completion. It may change the bucket's values and
  /// gradients only if no later part of the backward pass needs them. What it throws comes out of
  /// backward() or finish_backward().
  GradientWatch(const FlatParameters& flat, std::function<void(int bucket)> ready);
  GradientWatch(const GradientWatch&) = delete;
  GradientWatch& operator=(const GradientWatch&) = delete;

  /// Starts the countdown afresh.
  void begin_backward();
  /// Reports the remaining buckets in ascending order: those with unused parameters.
  void finish_backward();

 private:
  void arrive(std::size_t slot_index);
  void report(int bucket);

  FlatParameters flat_;
  std::function<void(int)> ready_;
  std::vector<int> parameters_of_bucket_;
  std::vector<int> missing_;  ///< by bucket, counted down; −1 when reported
  std::vector<bool> arrived_;
  bool active_ = false;
  Arrivals arrivals_;
};

}  // namespace gossamer
