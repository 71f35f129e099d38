#include <torch/nn/module.h>

#include <algorithm>

#include "gossamer/base/errors.h"
#include "gossamer/torch/modules/models.h"
#include "gossamer/train/worker.h"

namespace gossamer {
namespace {

/// Note [Buckets of a run]: staggered buckets load the links equally in every step when their
/// number is a multiple of the schedule's period.
int bucket_multiple(const TrainSpec& spec) {
  const bool follows = spec.stagger && spec.pattern != "allreduce";
  const int period = follows ? schedule_of(spec).period : 1;
  return std::clamp(period, 1, spec.buckets);
}

std::string_view usual_model(InputKind kind) {
  switch (kind) {
    case InputKind::images:
      return "residual_cnn";
    case InputKind::tokens:
      return "transformer";
    case InputKind::masked_tokens:
      return "bert";
    case InputKind::pairs:
      return "encoder_decoder";
  }
  __builtin_unreachable();
}

/// A causal model that is asked for masked tokens would learn little, and one that looks both ways
/// would only read off the next.
void check_reads(const ModelKind& model, InputKind kind) {
  if (model.input == kind) return;
  std::string fitting;
  for (const ModelKind& each : model_kinds()) {
    if (each.input != kind) continue;
    if (!fitting.empty()) fitting += ", ";
    fitting += each.name;
  }
  std::string got(model.name);
  got += ", which reads ";
  got += describe(model.input);
  fail_argument({.place = "train",
                 .what = "the model must read what the data has, " + std::string(describe(kind)),
                 .got = got,
                 .remedy = "choose " + fitting + ", or another task or objective"});
}

}  // namespace

ModelArgs sizes_of(const TrainSpec& spec) {
  const bool says_dropout = spec.dropout != kUsualDropout;
  return {.size = {spec.width, spec.layers, spec.heads, spec.hidden},
          .dropout = says_dropout ? std::optional(spec.dropout) : std::nullopt,
          .seed = spec.seed};
}

Model make_bare_model(const TrainSpec& spec, InputKind kind, const InputShape& input) {
  const ModelKind& model = find_model(spec.model.empty() ? usual_model(kind) : spec.model);
  check_reads(model, kind);
  ModelArgs args = sizes_of(spec);
  check_sizes(model, args);
  args.input = input;
  return model.make(args);
}

TrainModel make_train_model(const TrainSpec& spec, const Task& task) {
  const auto make = [&] { return make_bare_model(spec, task.kind, task.input); };
  ModuleOptions options;
  if (update_of(method_of(spec)) == UpdateAt::backward) {
    const Batch batch = task.training_batch(0, {0, host_shape_of(spec).workers()});
    options.completion = completion_order(make(), batch);
  }
  TrainModel made{.model = make(),
                  .tensors = {},
                  .layout = {.min_buckets = spec.buckets, .bucket_multiple = bucket_multiple(spec)},
                  .label_smoothing = spec.label_smoothing};
  made.tensors = tensors_of(*made.model.module, options);
  return made;
}

TensorEngineOptions engine_options(const TrainSpec& spec, const TrainModel& model) {
  Hyper undecayed = spec.hyper;
  undecayed.weight_decay = 0;
  return {.engine = {.schedule = schedule_of(spec),
                     .pattern = spec.pattern,
                     .optimizer = spec.optimizer,
                     .groups = {spec.hyper, undecayed},  // decay_group: weights, then others
                     .update = update_of(method_of(spec)),
                     .group_method = group_method_of(method_of(spec)),
                     .codec = find_codec(spec.codec),
                     .stagger = spec.stagger,
                     .late = method_of(spec).late,
                     .staleness = spec.staleness,
                     .clip_norm = spec.clip_norm,
                     .measure_distance = true,
                     .timeout_s = spec.timeout_s,
                     .kernel_threads = spec.kernel_threads},
          .layout = model.layout,
          .measures_norm = true};
}

double forward_backward(TrainModel& model, const Task& task, std::int64_t step, Shard shard) {
  const Batch batch = task.training_batch(step, shard);
  const at::Tensor loss = loss_of(model.model, batch, model.label_smoothing);
  loss.backward();
  return loss.item<double>();
}

}  // namespace gossamer
