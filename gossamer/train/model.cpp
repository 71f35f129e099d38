#include "gossamer/train/model.h"

#include <torch/nn/module.h>

#include <algorithm>

#include "gossamer/base/errors.h"
#include "gossamer/torch/devices/places.h"
#include "gossamer/torch/modules/models.h"

namespace gossamer {
namespace {

/// Note [Buckets of a run]: staggered buckets load the links equally in every step when their
/// number is a multiple of the schedule's period.
int bucket_multiple(const Recipe& recipe) {
  const AlgorithmSection& algorithm = recipe.algorithm;
  if (!algorithm.stagger || averages_gradients(*algorithm.pattern)) return 1;
  const MethodSpec method = method_of(algorithm, recipe.run.seed);
  const int period = make_schedule(method.schedule, host_shape_of(recipe.cluster)).period;
  return std::clamp(period, 1, algorithm.buckets);
}

/// A new module, whose tensors stay the same objects: models keep handles of them. Unlike
/// Module::to() for devices of every kind.
void move(const torch::nn::Module& module, const c10::Device& device) {
  const auto move_tensor = [&](const at::Tensor& tensor) {
    const at::Tensor there = tensor.detach().to(device);
    tensor.unsafeGetTensorImpl()->shallow_copy_from(there.getIntrusivePtr());
  };
  for (const at::Tensor& parameter : module.parameters()) move_tensor(parameter);
  for (const at::Tensor& buffer : module.buffers()) move_tensor(buffer);
}

}  // namespace

Model make_bare_model(const ModelSection& section, const ModelInput& input, std::uint64_t seed) {
  const ModelFacts& model = section.model != nullptr ? *section.model : usual_model(input.kind);
  const std::optional<double> dropout = dropout_of(section);
  check_reads(model, input.kind);
  check_sizes(model, section.size, dropout);
  return find_model(model.name)
      .make({.input = input.shape, .size = section.size, .dropout = dropout, .seed = seed});
}

TrainModel make_train_model(const Recipe& recipe, const Task& task, int local_rank) {
  const auto make = [&] {
    return make_bare_model(recipe.model, {task.kind, task.input}, recipe.run.seed);
  };
  ModuleOptions options;
  if (update_of(method_of(recipe.algorithm, recipe.run.seed)) == UpdateAt::backward) {
    const Batch batch = task.training_batch(0, {0, host_shape_of(recipe.cluster).workers()});
    options.completion = completion_order(make(), batch);
  }
  TrainModel made{.model = make(),
                  .tensors = {},
                  .layout = {.min_buckets = recipe.algorithm.buckets,
                             .bucket_multiple = bucket_multiple(recipe)},
                  .label_smoothing = recipe.optimizer.label_smoothing,
                  .device = device_for(recipe.run.device, local_rank)};
  if (!made.device.is_cpu()) move(*made.model.module, made.device);
  made.tensors = tensors_of(*made.model.module, options);
  return made;
}

TensorEngineOptions engine_options(const Recipe& recipe, const TrainModel& model) {
  const AlgorithmSection& algorithm = recipe.algorithm;
  const MethodSpec method = method_of(algorithm, recipe.run.seed);
  const Hyper decayed = hyper_of(recipe.optimizer, algorithm);
  Hyper undecayed = decayed;
  undecayed.weight_decay = 0;
  return {.engine = {.schedule = make_schedule(method.schedule, host_shape_of(recipe.cluster)),
                     .pattern = method.pattern,
                     .optimizer = std::string(recipe.optimizer.optimizer->name),
                     .groups = {decayed, undecayed},  // decay_group: weights, then others
                     .update = update_of(method),
                     .group_method = group_method_of(method),
                     .codec = algorithm.codec,
                     .stagger = algorithm.stagger,
                     .late = algorithm.late,
                     .staleness = algorithm.staleness,
                     .lost = algorithm.lost,
                     .clip_norm = algorithm.clip_norm,
                     .measure_distance = true,
                     .timeout_s = recipe.run.timeout_s,
                     .kernel_threads = recipe.run.kernel_threads},
          .layout = model.layout,
          .measures_norm = true};
}

}  // namespace gossamer
