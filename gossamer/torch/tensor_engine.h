#pragma once
/// TensorEngine: an Engine over a list of tensors as any torch program has them; the core of the
/// PyTorch door.

#include <ATen/core/Tensor.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gossamer/engine/engine.h"
#include "gossamer/torch/arrivals.h"
#include "gossamer/torch/flat_layout.h"
#include "gossamer/torch/pass_watch.h"
#include "gossamer/torch/step_segments.h"

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

/// Asked when the first gradient of a step arrives: the groups to step with while the backward pass
/// goes on, or nothing, which leaves all buckets to step().
using BeforeBackward = std::function<std::optional<std::vector<Hyper>>()>;

/// Whether fused optimizers can step this tensor: dense, real, float32 or float64, in CPU memory.
bool can_be_fused(const at::Tensor& tensor);

/// Note [Views and copies]: a tensor that can be fused becomes a view of a flat array, with the
/// strides it had, and stays that for good. Any other one (half precision, complex, on a device)
/// keeps its memory; it is mixed through a copy in the array, in float32 or float64, which goes in
/// before each step and out after it. Such tensors need optimizer "none". Gradients stay where
/// autograd puts them: each step reads them from there. A tensor without gradient is mixed but not
/// stepped, and its update count rests, as in torch.optim.
///
/// Note [Checked on arrival]: a gradient is checked when autograd has just written it, while it is
/// in the cache. step() reads only those again that are not as they were seen, and is the one that
/// refuses in any case, before anything is touched.
///
/// Note [Buckets in the backward]: with UpdateAt::backward a bucket steps when its last gradient
/// arrives. An accumulator runs after all functions of the pass that have an edge to it, and each
/// of these has computed all its gradients by then: no use of the parameter that gives it a
/// gradient needs its values any more. A use that gives none, under detach(), has saved a tensor
/// with the same version counter, which the step raises: autograd refuses to go on. Buckets with a
/// frozen parameter, which others may pass gradients through, are left to step(). What no version
/// guards is not guarded here: a use through `.data`, and a use under detach() in a checkpointed
/// function, which is run again with the values of that moment.
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
  /// Engine::set_anchors().
  void set_anchors() { engine_.set_anchors(); }

  /// From now on gradients are checked on arrival and, with UpdateAt::backward, step on arrival
  /// with the groups that `before` gives. What goes wrong then is thrown by the next step().
  void watch_gradients(BeforeBackward before = nullptr);
  /// Off: gradients that arrive do not step, for gradient accumulation.
  void set_stepping(bool enabled) { stepping_enabled_ = enabled; }
  /// Throws std::invalid_argument if a backward pass has begun the coming step.
  void refuse_in_step(const std::string& what) const;
  /// Whether one has.
  bool in_step() const { return step_.begun; }
  /// How many buckets the backward passes of the last finished step have stepped.
  int early_buckets() const { return early_buckets_; }

  /// One step with `groups` (by NamedTensor::group; their t is ignored), or what a backward pass
  /// that began it has left of it, with the groups of that. Tensors with a gradient are stepped
  /// unless `skip`; all are mixed. Throws std::invalid_argument for a gradient that was changed
  /// after it had been stepped with.
  StepReport step(std::span<const Hyper> groups, bool skip = false);

  std::vector<at::Tensor> tensors() const;
  int count() const { return static_cast<int>(tensors_.size()); }
  /// The optimizer's state vector `k` of a tensor: a view with the tensor's shape and strides.
  at::Tensor state(int tensor, int k) const { return view_of(tensor, states_, k); }
  /// The same of the pattern's own state; to be filled in before start_at().
  at::Tensor pattern_state(int tensor, int k) const { return view_of(tensor, pattern_states_, k); }
  /// What of a tensor was mixed last and travels next: itself, or its wider copy.
  at::Tensor home(int tensor) const { return places_.at(static_cast<std::size_t>(tensor)).home; }
  /// How often a tensor has been stepped.
  std::int64_t updates(int tensor) const { return updates_.at(static_cast<std::size_t>(tensor)); }
  void set_updates(int tensor, std::int64_t updates);

  /// The mean over all workers in place of the local values, and back; see Engine. Collective.
  double load_average();
  void restore_local();

  /// Gives everybody rank 0's values of other tensors (buffers, frozen parameters), of any dtype;
  /// strided, no two elements in one place.
  void broadcast(std::span<const at::Tensor> tensors);
  /// Replaces floating-point and complex tensors by their mean over all workers, which is formed in
  /// double precision; leaves others alone.
  void average(std::span<const at::Tensor> tensors);

  Engine& engine() { return engine_; }

 private:
  struct Place {
    std::size_t slot = 0;  ///< in layout_.slots
    at::Tensor home;       ///< view of the flat array
    bool is_view = false;  ///< the tensor itself is that view
  };

  /// The last look at a gradient, and how often it has been written since the last step.
  struct Seen {
    GradientMark finite;
    int arrivals = 0;
    int expected = 1;  ///< arrivals in a step: only the last value is worth a look
  };
  /// The step that has begun; empty between steps.
  struct Step {
    bool asked = false;  ///< BeforeBackward, whatever it answered
    bool begun = false;
    bool updates = false;  ///< false: only mixes
    StepClasses classes;
    std::vector<char> gathered;          ///< by tensor: checked, and `gradients` is set
    std::vector<const void*> gradients;  ///< by tensor: laid out as its place; null without
    std::vector<char> counted;           ///< by tensor: updates_ counts this step
    std::vector<char> arrived;           ///< by tensor
    std::vector<int> missing;            ///< by bucket: gradients to come
    std::vector<char> finished;          ///< by bucket: stepped by the backward
    std::vector<std::optional<GradientMark>> used;  ///< by tensor: the gradient stepped with
    std::vector<at::Tensor> converted;              ///< gradients that were not laid out so
    std::optional<double> norm_squared = 0;         ///< nothing once a gradient was not measured
    std::exception_ptr error;                       ///< thrown by the next step()
  };

  /// By state vector, then by array of the layout.
  using States = std::vector<std::vector<at::Tensor>>;

  EngineOptions engine_options() const;
  void place_tensors();
  std::vector<Bucket> buckets();
  at::Tensor view_of(int tensor, const States& states, int k) const;
  void list_buckets();
  std::string describe() const;
  void check_agreement();
  void begin_trace();
  void check_memory(std::size_t i) const;
  bool is_laid_out(std::size_t i, const at::Tensor& gradient) const;

  void arrive(std::size_t i);
  void look_at(std::size_t i);
  void arrive_in_backward(std::size_t i);
  void step_early(std::size_t bucket);
  void begin_step(std::span<const Hyper> groups, bool updates);
  void end_step();
  const void* gradient_of(std::size_t i);
  void check_gradient(std::size_t i, const void* g);
  void check_unchanged();
  void gather(std::size_t bucket);
  void set_up(std::size_t bucket);
  void copy_in();
  void copy_out();

  std::vector<NamedTensor> tensors_;
  FlatLayout layout_;
  std::vector<std::size_t> tensor_of_slot_;
  std::vector<std::vector<std::size_t>> slots_of_bucket_;  ///< with elements or padding in it
  std::vector<at::Tensor> values_;                         ///< by array of the layout
  States states_;                                          ///< the optimizer's
  States pattern_states_;
  std::vector<Place> places_;
  std::vector<std::int64_t> updates_;
  std::vector<Seen> seen_;
  Step step_;
  bool stepping_enabled_ = true;
  int early_buckets_ = 0;
  TensorEngineOptions options_;
  Engine engine_;
  BeforeBackward before_backward_;
  std::unique_ptr<PassWatch> passes_;  ///< null: nothing is recorded
  std::unique_ptr<Arrivals> arrivals_;
};

}  // namespace gossamer
