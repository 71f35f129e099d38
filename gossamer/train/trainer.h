#pragma once
/// Trainer: one worker's model, optimizer and engine, step by step, in CPU memory or on a device.

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gossamer/torch/devices/device_optimizer.h"
#include "gossamer/torch/devices/late_values.h"
#include "gossamer/torch/tensors/gradient_average.h"
#include "gossamer/train/model.h"

namespace gossamer {

/// What a step is known to have done.
struct StepValues {
  std::int64_t step = 0;
  double loss = 0;
  double grad_norm = 0;  ///< before clipping
};

/// Note [Training on a device]: in CPU memory the engine's fused passes step the parameters. On a
/// device torch's own operations do (DeviceOptimizer), and the engine mixes what they have stepped,
/// behind the device's work (Note [Parameters on a device]); all-reduce and gossip of gradients
/// average those before that (Note [Gradients on a device]). The host does not wait for the device:
/// loss and norm of a step are known some steps later.
///
/// Under all-reduce with Lost::go_on gradients are averaged before the engine sees them in CPU
/// memory, too: so one that comes back catches up, see Note [A replica that comes back].
class Trainer {
 public:
  /// `options` as engine_options() gives them, for CPU memory. The recipe must live as long; it is
  /// asked for optimizer, pattern and clipping. Throws std::invalid_argument for what a device does
  /// not serve.
  Trainer(const Recipe& recipe, TrainModel model, TensorEngineOptions options,
          Transport& transport);

  const Model& model() const { return model_.model; }
  const ModuleTensors& module_tensors() const { return model_.tensors; }
  TensorEngine& tensors() { return tensors_; }
  Engine& engine() { return tensors_.engine(); }
  const c10::Device& device() const { return model_.device; }

  /// The loss on the worker's part of the coming step's batch.
  at::Tensor forward(const Task& task, Shard shard);
  /// How many samples that was.
  std::int64_t samples() const { return samples_; }
  void backward(const at::Tensor& loss);
  /// The optimizer's step and the mix; `groups` as TensorEngine::step() takes them.
  StepReport update(std::span<const Hyper> groups, const at::Tensor& loss);
  /// All three.
  StepReport step(const Task& task, Shard shard, std::span<const Hyper> groups);

  /// Of steps that have not been asked for yet, the oldest first, what is known by now; all of them
  /// where it `waits`. Throws NonFiniteGradient for a gradient on a device that was not finite.
  std::vector<StepValues> known(bool waits);
  void wait_for_device();
  /// Seconds that steps and backward passes have waited for other workers so far.
  double exposed_s() const;

  /// Where the model is.
  Batch moved(Batch batch) const;
  /// The optimizer's state vector `k` of a tensor.
  at::Tensor optimizer_state(int tensor, int k);
  /// The pattern's own vector `k` of a tensor; one of zeros where gradients are averaged before the
  /// engine sees them, for that is what such a pattern starts from.
  at::Tensor pattern_state(int tensor, int k) const;
  /// How often a tensor has been stepped.
  std::int64_t updates(int tensor) const;
  void set_updates(int tensor, std::int64_t updates);

 private:
  StepValues values_of(const LateValues::Known& known);
  void average_gradients();
  std::vector<at::Tensor> replica();
  void took(const std::vector<at::Tensor>& replica);

  const Recipe& recipe_;
  TrainModel model_;
  const std::optional<GradientOptions> averages_;  ///< nothing: the engine averages, or nobody
  bool needs_loss_;                                ///< the schedule does, in each step
  TensorEngine tensors_;
  std::unique_ptr<DeviceOptimizer> own_;      ///< null: the engine steps
  std::unique_ptr<GradientAverage> average_;  ///< null: none, or before the first step
  LateValues late_;
  std::vector<StepValues> known_;
  double exposed_s_ = 0;  ///< of steps
  std::int64_t samples_ = 0;
};

}  // namespace gossamer
