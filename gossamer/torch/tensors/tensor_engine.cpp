#include "gossamer/torch/tensors/tensor_engine.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/engine/agreement.h"
#include "gossamer/engine/trace_file.h"
#include "gossamer/torch/devices/served.h"
#include "gossamer/torch/tensors/tensor_types.h"
#include "gossamer/torch/tensors/tensor_views.h"

namespace gossamer {
namespace {

/// Gives a tensor whose elements overlap or leave gaps memory without either.
void make_dense(at::Tensor& tensor) {
  // A gradient with other strides than the new value would be refused.
  const at::Tensor gradient = std::exchange(tensor.mutable_grad(), at::Tensor());
  tensor.set_data(at::empty(tensor.sizes(), tensor.options()).copy_(tensor.detach()));
  if (gradient.defined()) {
    tensor.mutable_grad() = at::empty_like(tensor.detach()).copy_(gradient.detach());
  }
}

std::size_t index_of_slot(const std::vector<NamedTensor>& tensors, const ParameterSlot& slot) {
  const auto found = std::ranges::find(tensors, slot.info.name, &NamedTensor::name);
  return static_cast<std::size_t>(found - tensors.begin());
}

}  // namespace

FlatLayout layout_of(std::span<const NamedTensor> tensors, const LayoutOptions& options) {
  if (tensors.empty()) {
    fail_argument({.place = kGossip,
                   .what = "the model has no trainable parameter",
                   .remedy = "set requires_grad on what is to be trained"});
  }
  std::vector<ParameterInfo> infos;
  for (const NamedTensor& named : tensors) {
    const bool floats = at::isFloatingType(named.tensor.scalar_type()) || named.tensor.is_complex();
    if (named.tensor.layout() != at::kStrided || !floats) {
      refuse_tensor(named, "must be a dense tensor of floating-point numbers",
                    "convert it, or freeze it with requires_grad_(False)");
    }
    infos.push_back({.name = named.name,
                     .dtype = mixing_dtype(named.tensor),
                     .sizes = as_real(named.tensor.detach()).sizes().vec(),
                     .group = named.group,
                     .beside_every = named.beside_every});
  }
  return plan_layout(infos, options);
}

bool can_be_fused(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  const bool is_wrapper = tensor.key_set().has(c10::DispatchKey::Python);
  return !is_wrapper && tensor.device().is_cpu() && tensor.layout() == at::kStrided &&
         (type == at::kFloat || type == at::kDouble || type == at::kBFloat16 || type == at::kHalf);
}

TensorEngine::TensorEngine(std::vector<NamedTensor> tensors, TensorEngineOptions options,
                           Transport& transport)
    : tensors_(std::move(tensors)),
      layout_(layout_of(tensors_, options.layout)),
      updates_(tensors_.size(), 0),
      seen_(tensors_.size()),
      options_(std::move(options)),
      engine_(engine_options(), transport, (place_tensors(), buckets())) {
  if (stage_) pinned_ = std::make_unique<PinnedRange>(stage_->device(), engine_.outboxes());
  Recorder* const recorder = options_.engine.recorder;
  if (recorder != nullptr) passes_ = std::make_unique<PassWatch>(parameters(), *recorder);
}

TensorEngine::~TensorEngine() {
  if (stage_) stage_->finish();  // before the outboxes go that it writes
}

/// Gradients are checked here, where they are known to be checked already.
EngineOptions TensorEngine::engine_options() const {
  EngineOptions engine = options_.engine;
  engine.check_gradients = engine.check_gradients && options_.measures_norm;
  engine.name_of = [this](int bucket, std::int64_t element) {
    return name_at(layout_, bucket, element);
  };
  return engine;
}

void TensorEngine::stage_tensors() {
  if (!stage_) return;
  std::vector<at::Tensor> by_slot;
  for (const std::size_t i : tensor_of_slot_) {
    by_slot.push_back(places_[i].has_master() ? places_[i].master.values : tensors_[i].tensor);
  }
  stage_->locate(by_slot);
}

void TensorEngine::place_tensors() {
  const at::NoGradGuard no_grad;
  if (const auto device = device_of(tensors_)) {
    device_steps_ = device_steps(tensors_, options_.engine);
    stage_ = std::make_unique<DeviceStage>(*device, layout_, device_steps_);
  }
  const bool fused = options_.engine.optimizer != "none";
  state_vectors_ = find_optimizer(options_.engine.optimizer).state.size();
  places_.resize(tensors_.size());
  for (std::size_t s = 0; s < layout_.slots.size(); ++s) {
    const std::size_t i = index_of_slot(tensors_, layout_.slots[s]);
    tensor_of_slot_.push_back(i);
    at::Tensor& tensor = tensors_[i].tensor;
    const bool is_stepped = fused && !tensors_[i].is_beside();
    if (is_stepped && !can_be_fused(tensor)) {
      refuse_tensor(tensors_[i], "cannot be stepped by a fused optimizer",
                    "let its own optimizer step it");
    }
    if (is_stepped && !tensor.is_non_overlapping_and_dense()) make_dense(tensor);
    Place& place = places_[i];
    place.slot = s;
    const at::Tensor values = as_real(tensor.detach());
    const bool is_mixed = !stage_ || device_steps_ != DeviceSteps::none;
    const bool is_low = is_mixed && wants_master(values);
    place.is_home = can_be_fused(tensor) && !is_low && tensor.is_non_overlapping_and_dense();
    place.states.resize(state_vectors_);
    place.sizes = tensor.sizes().vec();
    place.strides = tensor.strides().vec();
    place.dtype = tensor.scalar_type();
    if (is_low) place.master = make_master(values, is_behind() ? values.device() : at::kCPU);
    if (is_low && !is_behind()) {
      place.home = place.master.values;
    } else if (!place.is_home) {
      const ParameterSlot& slot = layout_.slots[s];
      place.home = stage_ ? view_like(stage_->host_array(slot.array), slot.offset, values)
                          : at::empty(values.sizes(), at::dtype(to_scalar_type(slot.info.dtype)));
      place.home.copy_(values);
    }
  }
  const std::size_t vectors = find_pattern(options_.engine.pattern).state.size();
  for (std::size_t k = 0; k < vectors; ++k) pattern_states_.push_back(zero_arrays(layout_));
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
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    const BucketLayout& layout = layout_.buckets[b];
    const auto array = static_cast<std::size_t>(layout.array);
    const DType dtype = layout_.arrays[array].dtype;
    const auto skipped = static_cast<std::size_t>(layout.first) * size_of(dtype);
    Bucket bucket{
        .dtype = dtype, .count = layout.count, .segments = segments_of(b, [this](std::size_t i) {
                                                 return segment_of(i, kNoStep, nullptr);
                                               })};
    bucket.is_beside = layout_.arrays[array].beside_every > 0;
    bucket.every = std::max<std::int64_t>(layout_.arrays[array].beside_every, 1);
    if (device_steps_ == DeviceSteps::behind) bucket.device = stage_->bucket(static_cast<int>(b));
    for (const auto& state : pattern_states_) {
      auto* const begin = static_cast<std::byte*>(state[array].mutable_data_ptr());
      bucket.pattern_state.push_back(begin + skipped);
    }
    all.push_back(std::move(bucket));
  }
  return all;
}

/// All of a tensor, as it is now.
Segment TensorEngine::segment_of(std::size_t i, int group, const void* g) {
  Segment segment{.group = group, .g = g, .x = home_of(i).mutable_data_ptr()};
  const std::size_t vectors = tensors_[i].is_beside() ? 0 : state_vectors_;
  for (std::size_t k = 0; k < vectors; ++k) {
    segment.state[k] = state(static_cast<int>(i), static_cast<int>(k)).mutable_data_ptr();
  }
  return segment;
}

/// What is in the bucket of its tensors' segments, and the gaps between them.
std::vector<Segment> TensorEngine::segments_of(std::size_t bucket,
                                               const std::function<Segment(std::size_t)>& segment) {
  SegmentLists segments(layout_);
  for (const std::size_t s : slots_of_bucket_[bucket]) {
    const ParameterSlot& slot = layout_.slots[s];
    const std::int64_t end = slot.offset + slot.count;
    segments.add(slot, slot.offset, end, segment(tensor_of_slot_[s]));
    segments.add(slot, end, segments.end_of(s), {.group = kGap});
  }
  return segments.take(bucket);
}

/// Finds where all tensors are now; see Note [Where parameters are].
void TensorEngine::locate() {
  for (std::size_t b = 0; b < layout_.buckets.size(); ++b) {
    for (const std::size_t s : slots_of_bucket_[b]) check_place(tensor_of_slot_[s]);
    engine_.set_segments(static_cast<int>(b), segments_of(b, [this](std::size_t i) {
                           return segment_of(i, kNoStep, nullptr);
                         }));
  }
  stage_tensors();
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
    const bool is_plain = named.tensor.layout() == at::kStrided && named.tensor.is_contiguous();
    text += "] " + std::string(c10::toString(named.tensor.scalar_type())) +
            (is_plain ? "" : " with strides " + c10::str(named.tensor.strides())) +
            (named.is_beside() ? " in every step of " + std::to_string(named.beside_every)
                               : " in group " + std::to_string(named.group)) +
            "\n";
  }
  return text;
}

void TensorEngine::check_agreement() {
  require_same(engine_.collectives(), kGossip, describe(),
               "build the same model and call Gossip with the same arguments on every rank");
}

void TensorEngine::start() {
  check_agreement();
  locate();
  engine_.start();
  copy_out(Shown::trained);
  begin_trace();
}

void TensorEngine::start_at(std::int64_t step) {
  check_agreement();
  locate();
  engine_.start_at(step);
  begin_trace();
}

void TensorEngine::start_back(Arrival& arrival) {
  locate();
  engine_.start_back(arrival);
  if (Recorder* const recorder = options_.engine.recorder) {
    recorder->set_start(std::chrono::system_clock::now());
    recorder->resume();
  }
}

/// Traces of workers that start anew go on counting from where they began.
void TensorEngine::begin_trace() {
  Recorder* const recorder = options_.engine.recorder;
  if (recorder == nullptr) return;
  const bool has_start = recorder->start() != std::chrono::system_clock::time_point{};
  if (!has_start) share_start(*recorder, engine_.collectives());
  recorder->resume();
}

bool TensorEngine::is_as_made(std::size_t i, const at::Tensor& tensor) const {
  const Place& place = places_[i];
  const bool is_stepped = options_.engine.optimizer != "none" && !tensors_[i].is_beside();
  const bool can_be_stepped = is_stepped || place.is_home;
  return tensor.scalar_type() == place.dtype && tensor.sizes() == place.sizes &&
         tensor.strides() == place.strides && (can_be_fused(tensor) || !can_be_stepped);
}

/// What was sent of it was laid out as it was then.
void TensorEngine::check_place(std::size_t i) const {
  if (is_as_made(i, tensors_[i].tensor)) return;
  refuse_tensor(tensors_[i], "has been given another dtype, shape or device since Gossip was made",
                "convert, reshape and move the model before");
}

bool TensorEngine::holds(const std::vector<std::vector<at::Tensor>>& groups) const {
  std::size_t i = 0;  // those beside the parameters come last, and nobody has them in a group
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const at::Tensor& tensor : groups[group]) {
      if (!tensor.requires_grad()) continue;
      if (i == tensors_.size() || !tensors_[i].tensor.is_same(tensor) ||
          tensors_[i].group != static_cast<int>(group) || !is_as_made(i, tensor)) {
        return false;
      }
      ++i;
    }
  }
  return i == tensors_.size() || tensors_[i].is_beside();
}

bool TensorEngine::is_laid_out(std::size_t i, const at::Tensor& gradient) const {
  const Place& place = places_[i];
  return gradient.layout() == at::kStrided && gradient.device().is_cpu() &&
         gradient.scalar_type() == place.dtype && gradient.sizes() == place.sizes &&
         gradient.strides() == place.strides;
}

std::vector<at::Tensor> TensorEngine::parameters() const {
  std::vector<at::Tensor> all;
  for (const NamedTensor& named : tensors_) {
    if (!named.is_beside()) all.push_back(named.tensor);
  }
  return all;
}

void TensorEngine::set_updates(int tensor, std::int64_t updates) {
  refuse_in_step("loading an optimizer state");
  updates_.at(at(tensor)) = updates;
  const at::Tensor& shown = place_of(tensor).shown_updates;
  if (shown.defined()) *shown.mutable_data_ptr<float>() = static_cast<float>(updates);
}

at::Tensor TensorEngine::state(int tensor, int k) {
  at::Tensor& values = place_of(tensor).states.at(at(k));
  if (!values.defined()) values = large_zeros_like(home_of(at(tensor)));
  return values;
}

void TensorEngine::set_state(int tensor, int k, const at::Tensor& values) {
  const at::NoGradGuard no_grad;
  const at::Tensor like = home_of(at(tensor));
  const bool fits = can_be_fused(values) && values.scalar_type() == like.scalar_type() &&
                    values.sizes() == like.sizes() && values.strides() == like.strides();
  at::Tensor& mine = place_of(tensor).states.at(at(k));
  mine = fits ? values.detach() : at::empty_like(like).copy_(values);
}

void TensorEngine::reset_state(int tensor) {
  for (at::Tensor& values : place_of(tensor).states) values = at::Tensor();
  place_of(tensor).shown_updates = at::Tensor();
}

void TensorEngine::show_updates(int tensor, const at::Tensor& number) {
  place_of(tensor).shown_updates = number;
  *number.mutable_data_ptr<float>() = static_cast<float>(updates(tensor));
}

at::Tensor TensorEngine::pattern_state(int tensor, int k) const {
  const ParameterSlot& slot = layout_.slots[place_of(tensor).slot];
  const auto& arrays = pattern_states_.at(at(k));
  return view_like(arrays[at(slot.array)], slot.offset, home_of(at(tensor)));
}

void TensorEngine::refuse_in_step(const std::string& what) const {
  if (!step_.begun) return;
  fail_argument({.place = kGossip,
                 .what = what + " between the backward and optimizer.step() with "
                                "update=\"backward\", which has stepped some parameters",
                 .remedy = "do it after optimizer.step(), or use update=\"step\""});
}

}  // namespace gossamer
