#include "gossamer/torch/tensor_engine.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/errors.h"
#include "gossamer/engine/agreement.h"
#include "gossamer/engine/trace_file.h"
#include "gossamer/torch/tensor_views.h"

namespace gossamer {
namespace {

constexpr const char* kPlace = "Gossip";

[[noreturn]] void refuse(const NamedTensor& named, const std::string& what,
                         const std::string& remedy) {
  fail_argument({.place = kPlace,
                 .what = "parameter '" + named.name + "' " + what,
                 .got = named.tensor.toString() + " on " + named.tensor.device().str(),
                 .remedy = remedy});
}

FlatLayout layout_of(const std::vector<NamedTensor>& tensors, const LayoutOptions& options) {
  if (tensors.empty()) {
    fail_argument({.place = kPlace,
                   .what = "the model has no trainable parameter",
                   .remedy = "set requires_grad on what is to be trained"});
  }
  std::vector<ParameterInfo> infos;
  for (const NamedTensor& named : tensors) {
    const bool floats = at::isFloatingType(named.tensor.scalar_type()) || named.tensor.is_complex();
    if (named.tensor.layout() != at::kStrided || !floats) {
      refuse(named, "must be a dense tensor of floating-point numbers",
             "convert it, or freeze it with requires_grad_(False)");
    }
    infos.push_back({.name = named.name,
                     .dtype = mixing_dtype(named.tensor),
                     .sizes = as_real(named.tensor.detach()).sizes().vec(),
                     .group = named.group});
  }
  return plan_layout(infos, options);
}

std::size_t index_of_slot(const std::vector<NamedTensor>& tensors, const ParameterSlot& slot) {
  const auto found = std::ranges::find(tensors, slot.info.name, &NamedTensor::name);
  return static_cast<std::size_t>(found - tensors.begin());
}

}  // namespace

bool can_be_fused(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return tensor.device().is_cpu() && tensor.layout() == at::kStrided &&
         (type == at::kFloat || type == at::kDouble);
}

TensorEngine::TensorEngine(std::vector<NamedTensor> tensors, TensorEngineOptions options,
                           Transport& transport)
    : tensors_(std::move(tensors)),
      layout_(layout_of(tensors_, options.layout)),
      values_(zero_arrays(layout_)),
      updates_(tensors_.size(), 0),
      seen_(tensors_.size()),
      options_(std::move(options)),
      engine_(engine_options(), transport, (place_tensors(), buckets())) {
  Recorder* const recorder = options_.engine.recorder;
  if (recorder != nullptr) passes_ = std::make_unique<PassWatch>(this->tensors(), *recorder);
}

/// Gradients are checked here, where they are known to be checked already.
EngineOptions TensorEngine::engine_options() const {
  EngineOptions engine = options_.engine;
  engine.check_gradients = false;
  return engine;
}

void TensorEngine::place_tensors() {
  const at::NoGradGuard no_grad;
  const bool fused = options_.engine.optimizer != "none";
  places_.resize(tensors_.size());
  for (std::size_t s = 0; s < layout_.slots.size(); ++s) {
    const ParameterSlot& slot = layout_.slots[s];
    const std::size_t i = index_of_slot(tensors_, slot);
    tensor_of_slot_.push_back(i);
    at::Tensor& tensor = tensors_[i].tensor;
    Place& place = places_[i];
    place.slot = s;
    place.is_view = can_be_fused(tensor);
    if (fused && !place.is_view) {
      refuse(tensors_[i], "cannot be stepped by a fused optimizer",
             "let its own optimizer step it");
    }
    const at::Tensor values = as_real(tensor.detach());
    const at::Tensor& array = values_[static_cast<std::size_t>(slot.array)];
    place.home = view_like(array, slot.offset, values);
    place.home.copy_(values);
    if (!place.is_view) continue;
    // A gradient with other strides than the new value would be refused.
    const at::Tensor gradient = std::exchange(tensor.mutable_grad(), at::Tensor());
    tensor.set_data(place.home);
    if (gradient.defined()) {
      tensor.mutable_grad() = at::empty_like(place.home).copy_(gradient.detach());
    }
  }
  const auto make_states = [&](std::size_t vectors, States& states) {
    for (std::size_t k = 0; k < vectors; ++k) states.push_back(zero_arrays(layout_));
  };
  make_states(find_optimizer(options_.engine.optimizer).state.size(), states_);
  make_states(find_pattern(options_.engine.pattern).state.size(), pattern_states_);
  list_buckets();
}

void TensorEngine::list_buckets() {
  const SegmentLists segments(layout_);
  slots_of_bucket_.resize(layout_.buckets.size());
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    const BucketLayout& bucket = layout_.buckets[b];
    for (std::size_t s = 0; s < layout_.slots.size(); ++s) {
      const ParameterSlot& slot = layout_.slots[s];
      const bool overlaps =
          slot.offset < bucket.first + bucket.count && segments.end_of(s) > bucket.first;
      if (slot.array == bucket.array && overlaps) slots_of_bucket_[b].push_back(s);
    }
  }
}

std::vector<Bucket> TensorEngine::buckets() {
  std::vector<Bucket> all;
  for (const BucketLayout& layout : layout_.buckets) {
    const auto array = static_cast<std::size_t>(layout.array);
    const DType dtype = layout_.arrays[array].dtype;
    const auto skipped = static_cast<std::size_t>(layout.first) * size_of(dtype);
    const auto at = [&](const at::Tensor& values) {
      return static_cast<void*>(static_cast<std::byte*>(values.mutable_data_ptr()) + skipped);
    };
    Bucket bucket{.dtype = dtype,
                  .x = at(values_[array]),
                  .count = layout.count,
                  .segments = {{0, layout.count, kNoStep}}};
    for (const auto& state : states_) bucket.optimizer_state.push_back(at(state[array]));
    for (const auto& state : pattern_states_) bucket.pattern_state.push_back(at(state[array]));
    all.push_back(std::move(bucket));
  }
  return all;
}

std::string TensorEngine::describe() const {
  const EngineOptions& engine = options_.engine;
  std::string text = "topology " + engine.schedule.name + ", pattern " + engine.pattern +
                     ", optimizer " + engine.optimizer + ", " +
                     std::to_string(layout_.buckets.size()) + " buckets" +
                     (engine.recorder != nullptr ? ", traced" : "") + "\n";
  for (const NamedTensor& named : tensors_) {
    text += "parameter '" + named.name + "' [";
    for (const std::int64_t size : named.tensor.sizes()) text += std::to_string(size) + ",";
    text += "] " + std::string(c10::toString(named.tensor.scalar_type())) + " in group " +
            std::to_string(named.group) + "\n";
  }
  return text;
}

void TensorEngine::check_agreement() {
  require_same(engine_.collectives(), kPlace, describe(),
               "build the same model and call Gossip with the same arguments on every rank");
}

void TensorEngine::start() {
  check_agreement();
  engine_.start();
  copy_out();
  begin_trace();
}

void TensorEngine::start_at(std::int64_t step) {
  check_agreement();
  engine_.start_at(step);
  begin_trace();
}

/// Traces of workers that start anew go on counting from where they began.
void TensorEngine::begin_trace() {
  Recorder* const recorder = options_.engine.recorder;
  if (recorder == nullptr) return;
  const bool has_start = recorder->start() != std::chrono::system_clock::time_point{};
  if (!has_start) share_start(*recorder, engine_.collectives());
  recorder->resume();
}

/// A view that is one no longer would train something that the model does not see.
void TensorEngine::check_memory(std::size_t i) const {
  const Place& place = places_[i];
  const at::Tensor& tensor = tensors_[i].tensor;
  const bool moved = place.is_view && (tensor.const_data_ptr() != place.home.const_data_ptr() ||
                                       tensor.strides() != place.home.strides());
  if (moved) {
    refuse(tensors_[i], "has been given other memory since Gossip was made",
           "move, convert and reshape the model before; change values in place");
  }
}

bool TensorEngine::is_laid_out(std::size_t i, const at::Tensor& gradient) const {
  const at::Tensor& home = places_[i].home;
  return gradient.layout() == at::kStrided && gradient.device().is_cpu() &&
         gradient.scalar_type() == home.scalar_type() && gradient.sizes() == home.sizes() &&
         gradient.strides() == home.strides();
}

std::vector<at::Tensor> TensorEngine::tensors() const {
  std::vector<at::Tensor> all;
  for (const NamedTensor& named : tensors_) all.push_back(named.tensor);
  return all;
}

void TensorEngine::set_updates(int tensor, std::int64_t updates) {
  refuse_in_step("loading an optimizer state");
  updates_.at(static_cast<std::size_t>(tensor)) = updates;
}

at::Tensor TensorEngine::view_of(int tensor, const States& states, int k) const {
  const Place& place = places_.at(static_cast<std::size_t>(tensor));
  const ParameterSlot& slot = layout_.slots[place.slot];
  const auto& arrays = states.at(static_cast<std::size_t>(k));
  return view_like(arrays[static_cast<std::size_t>(slot.array)], slot.offset, place.home);
}

void TensorEngine::copy_in() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!places_[i].is_view) places_[i].home.copy_(as_real(tensors_[i].tensor.detach()));
  }
}

/// Also tells autograd that the values have changed.
void TensorEngine::copy_out() {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    at::Tensor& tensor = tensors_[i].tensor;
    if (places_[i].is_view) {
      torch::autograd::impl::bump_version(tensor);
    } else {
      as_real(tensor.detach()).copy_(places_[i].home);
    }
  }
}

void TensorEngine::refuse_in_step(const std::string& what) const {
  if (!step_.begun) return;
  fail_argument({.place = kPlace,
                 .what = what + " between the backward and optimizer.step() with "
                                "update=\"backward\", which has stepped some parameters",
                 .remedy = "do it after optimizer.step(), or use update=\"step\""});
}

double TensorEngine::load_average() {
  refuse_in_step("averaging");
  const at::NoGradGuard no_grad;
  engine_.quiesce();  // nothing may travel while it changes
  copy_in();
  const double disagreement = engine_.load_average();
  copy_out();
  return disagreement;
}

void TensorEngine::restore_local() {
  engine_.restore_local();
  copy_out();
}

}  // namespace gossamer
