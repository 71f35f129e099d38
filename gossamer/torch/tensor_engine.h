#pragma once
/// TensorEngine: an Engine over a list of tensors as any torch program has them; the core of the
/// PyTorch door.

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gossamer/engine/engine.h"
#include "gossamer/torch/flat_layout.h"

namespace gossamer {

/// A trainable tensor, with the index of its parameter group.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  int group = 0;
};

struct TensorEngineOptions {
  /// `optimizer` "none" if the caller steps the tensors itself. Groups and segments are overwritten
  /// in every step.
  EngineOptions engine;
  LayoutOptions layout = {.min_buckets = 1};
};

/// Whether fused optimizers can step this tensor: dense, real, float32 or float64, in CPU memory.
bool can_be_fused(const at::Tensor& tensor);

/// Note [Views and copies]: a tensor that can be fused becomes a view of a flat array, with the
/// strides it had, and stays that for good. Any other one (half precision, complex, on a device)
/// keeps its memory; it is mixed through a copy in the array, in float32 or float64, which goes in
/// before each step and out after it. Such tensors need optimizer "none". Gradients stay where
/// autograd puts them: each step reads them from there. A tensor without gradient is mixed but not
/// stepped, and its update count rests, as in torch.optim.
class TensorEngine {
 public:
  /// Throws std::invalid_argument for tensors that cannot be served, share memory, or are used with
  /// an optimizer they do not fit.
  TensorEngine(std::vector<NamedTensor> tensors, TensorEngineOptions options, Transport& transport);

  TensorEngine(const TensorEngine&) = delete;
  TensorEngine& operator=(const TensorEngine&) = delete;

  /// Checks that all workers have the same tensors and options, gives everybody rank 0's values and
  /// starts. Collective; throws std::invalid_argument on every worker where they differ.
  void start();
  /// Checks as start() does and goes on after `step` steps, everybody from his own values.
  /// Collective.
  void start_at(std::int64_t step);

  /// One step with `groups` (by NamedTensor::group; their t is ignored). Tensors with a gradient
  /// are stepped unless `skip`; all are mixed.
  StepReport step(std::span<const Hyper> groups, bool skip = false);

  std::vector<at::Tensor> tensors() const;
  int count() const { return static_cast<int>(tensors_.size()); }
  /// The optimizer's state vector `k` of a tensor: a view with the tensor's shape and strides.
  at::Tensor state(int tensor, int k) const;
  /// How often a tensor has been stepped.
  std::int64_t updates(int tensor) const { return updates_.at(static_cast<std::size_t>(tensor)); }
  void set_updates(int tensor, std::int64_t updates);

  /// The mean over all workers in place of the local values, and back; see Engine. Collective.
  double load_average();
  void restore_local();

  /// Gives everybody rank 0's values of other tensors (buffers, frozen parameters), of any dtype.
  void broadcast(std::span<const at::Tensor> tensors);
  /// Replaces floating-point tensors by their mean over all workers; leaves others alone.
  void average(std::span<const at::Tensor> tensors);

  Engine& engine() { return engine_; }

 private:
  struct Place {
    std::size_t slot = 0;  ///< in layout_.slots
    at::Tensor home;       ///< view of the flat array
    bool is_view = false;  ///< the tensor itself is that view
  };

  EngineOptions engine_options() const;
  void place_tensors();
  std::vector<Bucket> buckets();
  std::string describe() const;
  const void* gradient_of(std::size_t i);
  void check_agreement();
  void check_memory(std::size_t i) const;
  void set_up_step(std::span<const Hyper> groups, bool skip);
  void copy_in();
  void copy_out();

  std::vector<NamedTensor> tensors_;
  FlatLayout layout_;
  std::vector<std::size_t> tensor_of_slot_;
  std::vector<at::Tensor> values_;               ///< by array of the layout
  std::vector<std::vector<at::Tensor>> states_;  ///< by state vector, then by array
  std::vector<Place> places_;
  std::vector<std::int64_t> updates_;
  std::vector<at::Tensor> kept_gradients_;  ///< converted for the step under way
  TensorEngineOptions options_;
  Engine engine_;
};

}  // namespace gossamer
