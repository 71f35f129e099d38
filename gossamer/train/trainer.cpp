#include "gossamer/train/trainer.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <utility>

#include "gossamer/base/index.h"
#include "gossamer/engine/non_finite.h"
#include "gossamer/torch/devices/streams.h"

namespace gossamer {
namespace {

/// Whether gradients are averaged before the engine sees them.
bool averages_first(const c10::Device& device, const Recipe& recipe) {
  const Pattern& pattern = *recipe.algorithm.pattern;
  const bool catches_up = averages_gradients(pattern) && recipe.algorithm.lost == Lost::go_on;
  return pattern.averages_first && (!device.is_cpu() || catches_up);
}

/// What the engine is told where another one steps, or averages.
TensorEngineOptions options_on(const c10::Device& device, const Recipe& recipe,
                               TensorEngineOptions options) {
  EngineOptions& engine = options.engine;
  if (!device.is_cpu()) {
    engine.optimizer = "none";
    engine.clip_norm = 0;
    engine.check_gradients = false;
    options.measures_norm = false;
  }
  if (!averages_first(device, recipe)) return options;
  engine.pattern = "cwa";
  engine.update = UpdateAt::step;
  if (averages_gradients(*recipe.algorithm.pattern)) {
    engine.schedule = alone_schedule(engine.schedule.shape);
  }
  return options;
}

std::optional<GradientOptions> averages_on(const c10::Device& device, const Recipe& recipe,
                                           const EngineOptions& engine) {
  if (!averages_first(device, recipe)) return std::nullopt;
  GradientOptions gradients{.codec = recipe.algorithm.codec, .recorder = engine.recorder};
  if (!averages_gradients(*recipe.algorithm.pattern)) {
    gradients.rounds = engine.schedule;
    gradients.staggers = engine.stagger;
  }
  return gradients;
}

/// From memory that the device reads by itself.
at::Tensor moved(const at::Tensor& tensor, const c10::Device& device) {
  if (!tensor.defined() || device.is_cpu()) return tensor;
  return tensor.pin_memory().to(device, /*non_blocking=*/true);
}

}  // namespace

Trainer::Trainer(const Recipe& recipe, TrainModel model, TensorEngineOptions options,
                 Transport& transport)
    : recipe_(recipe),
      model_(std::move(model)),
      averages_(averages_on(model_.device, recipe, options.engine)),
      needs_loss_(options.engine.schedule.loss_driven),
      tensors_(model_.tensors.trained, options_on(model_.device, recipe, options), transport) {
  if (model_.device.is_cpu()) return;
  own_ = std::make_unique<DeviceOptimizer>(*recipe.optimizer.optimizer, model_.tensors.trained);
}

/// From the first step on: before, it is not known whether this worker comes back.
void Trainer::average_gradients() {
  std::vector<AveragedTensor> averaged;
  for (const NamedTensor& named : model_.tensors.trained) {
    averaged.push_back({named.name, named.tensor});
  }
  GradientOptions options = *averages_;
  options.first_round = engine().steps_done();
  options.seated = &engine().seating();
  options.lost = engine().lost();
  options.collectives = &engine().collectives();
  options.replica = {.tensors = [this] { return replica(); },
                     .took = [this](const std::vector<at::Tensor>& tensors) { took(tensors); }};
  average_ = std::make_unique<GradientAverage>(averaged, options, engine().runner(),
                                               engine().collectives().seating());
}

/// Model, optimizer state, and last the counts of updates.
std::vector<at::Tensor> Trainer::replica() {
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : model_.model.module->parameters()) all.push_back(parameter);
  for (const at::Tensor& buffer : model_.model.module->buffers()) all.push_back(buffer);
  const std::ptrdiff_t vectors = std::ssize(recipe_.optimizer.optimizer->state);
  const at::Tensor counts = at::empty({tensors_.count()}, at::kLong);
  for (int i = 0; i < tensors_.count(); ++i) {
    for (int k = 0; k < vectors; ++k) all.push_back(optimizer_state(i, k));
    counts[i] = updates(i);
  }
  all.push_back(counts);
  return all;
}

void Trainer::took(const std::vector<at::Tensor>& replica) {
  for (int i = 0; i < tensors_.count(); ++i) {
    set_updates(i, replica.back()[i].item<std::int64_t>());
  }
}

at::Tensor Trainer::forward(const Task& task, Shard shard) {
  if (averages_ && !average_) average_gradients();
  const Batch batch = moved(task.training_batch(engine().steps_done(), shard));
  samples_ = batch.inputs.size(0);
  return loss_of(model_.model, batch, model_.label_smoothing);
}

void Trainer::backward(const at::Tensor& loss) { loss.backward(); }

StepReport Trainer::update(std::span<const Hyper> groups, const at::Tensor& loss) {
  StepReport report;
  if (own_ == nullptr) {
    const double value = loss.item<double>();
    report = tensors_.step(groups, false, value);
    if (average_) average_->end_step();
    known_.push_back({.step = report.step, .loss = value, .grad_norm = report.grad_norm});
  } else {
    const at::Tensor norms = own_->step(groups, recipe_.algorithm.clip_norm);
    report = tensors_.step(groups, false, needs_loss_ ? loss.item<double>() : 0);
    if (average_) average_->end_step();
    late_.add(report.step, at::cat({loss.detach().reshape({1}).to(norms.scalar_type()), norms}));
  }
  forget_gradients(model_.tensors.trained);
  exposed_s_ += report.exposed_s;
  return report;
}

StepReport Trainer::step(const Task& task, Shard shard, std::span<const Hyper> groups) {
  const at::Tensor loss = forward(task, shard);
  backward(loss);
  return update(groups, loss);
}

/// The loss, then the norms of the gradients by tensor.
StepValues Trainer::values_of(const LateValues::Known& known) {
  StepValues values{.step = known.step, .loss = known.values.front()};
  for (std::size_t i = 1; i < known.values.size(); ++i) {
    const double norm = known.values[i];
    if (!std::isfinite(norm)) {
      const int rank = tensors_.engine().collectives().rank();
      refuse_non_finite(model_.tensors.trained[i - 1].name, rank, known.step, norm);
    }
    values.grad_norm = std::hypot(values.grad_norm, norm);
  }
  return values;
}

std::vector<StepValues> Trainer::known(bool waits) {
  while (const auto next = late_.take(waits)) known_.push_back(values_of(*next));
  return std::exchange(known_, {});
}

void Trainer::wait_for_device() {
  if (model_.device.is_cpu()) return;
  current_stream(model_.device).synchronize();
}

double Trainer::exposed_s() const {
  return exposed_s_ + (average_ == nullptr ? 0 : average_->exposed_s());
}

Batch Trainer::moved(Batch batch) const {
  batch.inputs = gossamer::moved(batch.inputs, model_.device);
  batch.targets = gossamer::moved(batch.targets, model_.device);
  batch.sources = gossamer::moved(batch.sources, model_.device);
  return batch;
}

at::Tensor Trainer::optimizer_state(int tensor, int k) {
  return own_ == nullptr ? tensors_.state(tensor, k) : own_->state(tensor, k);
}

at::Tensor Trainer::pattern_state(int tensor, int k) const {
  if (!averages_) return tensors_.pattern_state(tensor, k);
  return at::zeros_like(model_.tensors.trained[at(tensor)].tensor.detach(), at::kCPU);
}

std::int64_t Trainer::updates(int tensor) const {
  return own_ == nullptr ? tensors_.updates(tensor) : own_->updates(tensor);
}

void Trainer::set_updates(int tensor, std::int64_t updates) {
  if (own_ == nullptr) return tensors_.set_updates(tensor, updates);
  own_->set_updates(tensor, updates);
}

}  // namespace gossamer
