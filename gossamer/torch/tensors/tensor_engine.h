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

#include "gossamer/base/index.h"
#include "gossamer/engine/engine.h"
#include "gossamer/torch/devices/device_stage.h"
#include "gossamer/torch/tensors/arrivals.h"
#include "gossamer/torch/tensors/flat_layout.h"
#include "gossamer/torch/tensors/masters.h"
#include "gossamer/torch/tensors/named_tensor.h"
#include "gossamer/torch/tensors/pass_watch.h"
#include "gossamer/torch/tensors/step_segments.h"

namespace gossamer {

struct TensorEngineOptions {
  /// `optimizer` "none" if the caller steps the tensors itself. Groups and segments are overwritten
  /// in every step.
  EngineOptions engine;
  LayoutOptions layout = {.min_buckets = 1};
  /// The step reads every gradient, for its norm, and checks it meanwhile; else it is checked on
  /// arrival, see Note [Checked on arrival], and the norm is that of gradients seen in the step.
  bool measures_norm = false;
};

/// How these tensors lie in buckets. Throws std::invalid_argument for tensors that cannot.
FlatLayout layout_of(std::span<const NamedTensor> tensors, const LayoutOptions& options);

/// Asked when the first gradient of a step arrives: the groups to step with while the backward pass
/// goes on, or nothing, which leaves all buckets to step().
using BeforeBackward = std::function<std::optional<std::vector<Hyper>>()>;

/// Whether fused optimizers can step this tensor: strided, real, float32, float64, bfloat16 or
/// float16, in CPU memory.
bool can_be_fused(const at::Tensor& tensor);

/// Note [Where parameters are]: parameters stay where torch has put them, and are looked for anew
/// whenever the engine runs, so that their owner may give them other memory, or share it, like that
/// of any tensor. A state vector is a tensor of its own, too. A tensor of half precision is mixed
/// and stepped through its master, see Note [Masters]. A tensor that cannot be fused (complex) is
/// mixed through a copy of its own in float32 or float64, which goes in before each step and out
/// after it; it needs optimizer "none". Master and copy are the tensor's home. What changes between
/// two steps is kept by the mix, see Note [Scattered buckets]; dtype, shape and strides must not
/// change. A tensor without gradient is mixed but not stepped, and its update count rests, as in
/// torch.optim.
///
/// Tensors that are all on one device have homes, too, and DeviceSteps says what a step does with
/// them. Where the exchange hides behind the device the correction is formed there, see
/// Note [Parameters on a device]. There, and where nothing is mixed, a copy of the tensor stands in
/// its home only while something else than a step is done with it.
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
  /// Tensors beside the parameters come last. Throws std::invalid_argument for tensors that cannot
  /// be served, share memory, or are used with an optimizer they do not fit.
  TensorEngine(std::vector<NamedTensor> tensors, TensorEngineOptions options, Transport& transport);

  TensorEngine(const TensorEngine&) = delete;
  TensorEngine& operator=(const TensorEngine&) = delete;
  ~TensorEngine();

  /// Checks that all workers have the same tensors and options, gives everybody rank 0's values and
  /// starts. Collective; throws std::invalid_argument on every worker where they differ.
  void start();
  /// Checks as start() does and goes on after `step` steps, everybody from his own values.
  /// Collective.
  void start_at(std::int64_t step);
  /// Engine::start_back().
  void start_back(Arrival& arrival);
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
  /// The tensors whose gradients are not all finite, or cannot be looked at here. Those that were
  /// seen on arrival, and have not changed since, are not read again.
  std::vector<int> doubtful_gradients() const;
  /// How many buckets the backward passes of the last finished step have stepped.
  int early_buckets() const { return early_buckets_; }

  /// One step with `groups` (by NamedTensor::group; their t is ignored), or what a backward pass
  /// that began it has left of it, with the groups of that. Tensors with a gradient are stepped
  /// unless `skip`; all are mixed. `loss` is as in Engine::step(). Throws std::invalid_argument for
  /// a gradient that was changed after it had been stepped with.
  StepReport step(std::span<const Hyper> groups, bool skip = false, double loss = 0);

  /// The tensors but those beside the parameters.
  std::vector<at::Tensor> parameters() const;
  const std::string& name(int tensor) const { return tensors_.at(at(tensor)).name; }
  int count() const { return static_cast<int>(tensors_.size()); }
  /// The optimizer's state vector `k` of a tensor, with its shape and strides; of zeros at first.
  at::Tensor state(int tensor, int k);
  /// From now on that vector is `values` itself, or a copy where its dtype or strides differ.
  void set_state(int tensor, int k, const at::Tensor& values);
  /// From now on these vectors are new ones, of zeros, and nobody sees the count.
  void reset_state(int tensor);
  /// A number in memory, float32, that shows how often a tensor has been stepped. Who changes it
  /// changes the count.
  void show_updates(int tensor, const at::Tensor& number);
  /// The pattern's own state vector `k`, a view; to be filled in before start_at().
  at::Tensor pattern_state(int tensor, int k) const;
  /// Whether these are its parameters, in their groups, as they were when it was made; frozen ones
  /// do not count.
  bool holds(const std::vector<std::vector<at::Tensor>>& groups) const;
  /// What of a tensor was mixed last and travels next: itself, or its wider copy, which has taken
  /// over what the owner has changed.
  at::Tensor home(int tensor);
  /// Makes `values` the home of what the tensor holds now.
  void set_home(int tensor, const at::Tensor& values);
  /// How often a tensor has been stepped.
  std::int64_t updates(int tensor) const { return updates_.at(at(tensor)); }
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
  const FlatLayout& layout() const { return layout_; }

 private:
  struct Place {
    std::size_t slot = 0;                      ///< in layout_.slots
    bool is_home = false;                      ///< the tensor itself is what is mixed
    at::Tensor home;                           ///< else its copy
    Master master;                             ///< whose values are `home`, or empty
    std::vector<std::int64_t> sizes, strides;  ///< of the tensor
    c10::ScalarType dtype = c10::ScalarType::Float;
    std::vector<at::Tensor> states;  ///< the optimizer's; undefined until they are asked for
    at::Tensor shown_updates;        ///< undefined: nobody sees them

    bool has_master() const { return master.written.defined(); }
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

  /// What copy_out() writes into tensors with masters.
  enum class Shown {
    trained,   ///< rounded at random
    averaged,  ///< rounded to nearest, equal on all workers
    local,     ///< what was there before `averaged`
  };

  EngineOptions engine_options() const;
  bool checks_itself() const { return options_.engine.check_gradients && !options_.measures_norm; }
  void place_tensors();
  void stage_tensors();
  std::vector<Bucket> buckets();
  void list_buckets();
  Segment segment_of(std::size_t i, int group, const void* g);
  std::vector<Segment> segments_of(std::size_t bucket,
                                   const std::function<Segment(std::size_t)>& segment);
  void locate();
  bool is_as_made(std::size_t i, const at::Tensor& tensor) const;
  Place& place_of(int tensor) { return places_.at(at(tensor)); }
  const Place& place_of(int tensor) const { return places_.at(at(tensor)); }
  std::string describe() const;
  void check_agreement();
  void begin_trace();
  void check_place(std::size_t i) const;
  bool is_laid_out(std::size_t i, const at::Tensor& gradient) const;
  bool can_step(std::size_t i) const { return places_[i].is_home || places_[i].has_master(); }

  bool has_finite_gradient(std::size_t i) const;
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
  at::Tensor home_of(std::size_t i) const;
  std::uint64_t rounding_key_of(std::size_t i);
  bool is_behind() const { return stage_ && device_steps_ == DeviceSteps::behind; }
  void take_all_changes();
  void copy_in();
  void write_master(std::size_t i);
  void write_masters();
  void copy_out(Shown shown);

  std::vector<NamedTensor> tensors_;
  FlatLayout layout_;
  std::vector<std::size_t> tensor_of_slot_;
  std::vector<std::vector<std::size_t>> slots_of_bucket_;  ///< with elements or padding in it
  std::size_t state_vectors_ = 0;                          ///< of the optimizer
  /// By state vector of the pattern, then by array of the layout.
  std::vector<std::vector<at::Tensor>> pattern_states_;
  std::vector<Place> places_;
  bool has_large_pages_ = false;  ///< they are asked for in the first step: it takes a while
  std::vector<std::int64_t> updates_;
  std::vector<Seen> seen_;
  Step step_;
  bool stepping_enabled_ = true;
  bool is_averaged_ = false;  ///< between load_average() and restore_local()
  int early_buckets_ = 0;
  TensorEngineOptions options_;
  std::unique_ptr<DeviceStage> stage_;  ///< null: all tensors are in CPU memory
  DeviceSteps device_steps_ = DeviceSteps::copied;
  Engine engine_;
  std::unique_ptr<PinnedRange> pinned_;  ///< the outboxes
  BeforeBackward before_backward_;
  std::unique_ptr<PassWatch> passes_;  ///< null: nothing is recorded
  std::unique_ptr<Arrivals> arrivals_;
};

}  // namespace gossamer
