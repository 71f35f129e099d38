// The step of a TensorEngine, of which a backward pass may do a part.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/engine/non_finite.h"
#include "gossamer/kernels/finite.h"
#include "gossamer/kernels/norm.h"
#include "gossamer/torch/tensors/tensor_engine.h"
#include "gossamer/torch/tensors/tensor_types.h"
#include "gossamer/torch/tensors/tensor_views.h"

namespace gossamer {
namespace {

/// Calls f with the `count` elements at `data`, of type float or double.
template <class F>
auto with_elements(DType dtype, const void* data, std::int64_t count, const F& f) {
  return visit_dtype(dtype, [&]<class T>(T) {
    return f(std::span<const T>{static_cast<const T*>(data), static_cast<std::size_t>(count)});
  });
}

/// As in torch.optim; there, what a sparse gradient leaves out is zero.
bool takes_sparse_gradients(std::string_view optimizer) {
  return optimizer == "sgd" || optimizer == "momentum";
}

}  // namespace

// Gradients that arrive.

void TensorEngine::watch_gradients(BeforeBackward before) {
  before_backward_ = std::move(before);
  arrivals_ = std::make_unique<Arrivals>(parameters(), [this](std::size_t i) { arrive(i); });
}

void TensorEngine::arrive(std::size_t i) {
  const at::NoGradGuard no_grad;
  look_at(i);
  const bool steps = options_.engine.update == UpdateAt::backward && before_backward_;
  if (steps && stepping_enabled_ && !step_.error) arrive_in_backward(i);
}

void TensorEngine::look_at(std::size_t i) {
  Seen& seen = seen_[i];
  seen.finite = {};
  const bool is_last = ++seen.arrivals >= seen.expected;
  const at::Tensor& gradient = tensors_[i].tensor.grad();
  if (!checks_itself() || !is_last || !gradient.defined()) return;
  if (has_finite_gradient(i)) seen.finite = GradientMark(gradient);
}

/// Reads all of it; false also where it cannot.
bool TensorEngine::has_finite_gradient(std::size_t i) const {
  const at::Tensor& gradient = tensors_[i].tensor.grad();
  if (!places_[i].is_home || !is_laid_out(i, gradient)) return false;
  const ParameterSlot& slot = layout_.slots[places_[i].slot];
  return with_elements(slot.info.dtype, gradient.const_data_ptr(), slot.count,
                       [](auto values) { return all_finite(values); });
}

std::vector<int> TensorEngine::doubtful_gradients() const {
  std::vector<int> doubtful;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const at::Tensor& gradient = tensors_[i].tensor.grad();
    if (!gradient.defined() || seen_[i].finite.is_of(gradient)) continue;
    if (!has_finite_gradient(i)) doubtful.push_back(static_cast<int>(i));
  }
  return doubtful;
}

void TensorEngine::arrive_in_backward(std::size_t i) {
  if (!std::exchange(step_.asked, true)) {
    if (const auto groups = before_backward_()) {
      begin_step(*groups, true);
      if (device_steps_ == DeviceSteps::copied) copy_in();
    }
  }
  if (!step_.begun) return;
  const ParameterSlot& slot = layout_.slots[places_[i].slot];
  if (std::exchange(step_.arrived[i], 1) != 0) {
    fail_argument({.place = kGossip,
                   .what = "a second gradient arrived for parameter '" + tensors_[i].name +
                           "' before optimizer.step(), and update=\"backward\" has used the first",
                   .remedy = "run all backwards of a step but the last inside gossip.no_sync(), or "
                             "use update=\"step\""});
  }
  for (int b = slot.first_bucket; b <= slot.last_bucket; ++b) {
    const auto bucket = static_cast<std::size_t>(b);
    if (--step_.missing[bucket] == 0 && !step_.error) step_early(bucket);
  }
}

void TensorEngine::step_early(std::size_t bucket) {
  Recorder* const recorder = options_.engine.recorder;
  if (recorder != nullptr) recorder->did(TimelineEvent::Kind::backward, static_cast<int>(bucket));
  try {
    gather(bucket);
    set_up(bucket);
    engine_.set_groups(step_.classes.all());
    engine_.gradient_ready(static_cast<int>(bucket));
  } catch (...) {
    step_.error = std::current_exception();
    return;
  }
  step_.finished[bucket] = 1;
  for (const std::size_t s : slots_of_bucket_[bucket]) {
    const std::size_t i = tensor_of_slot_[s];
    const at::Tensor& tensor = tensors_[i].tensor;
    // What has a master is written by step().
    if (places_[i].is_home) torch::autograd::impl::bump_version(tensor);
    if (step_.gradients[i] != nullptr && !step_.used[i])
      step_.used[i] = GradientMark(tensor.grad());
  }
}

// The step.

void TensorEngine::begin_step(std::span<const Hyper> groups, bool updates) {
  const std::size_t tensors = tensors_.size();
  const std::size_t buckets = layout_.buckets.size();
  if (!std::exchange(has_large_pages_, true)) {
    for (std::size_t i = 0; i < tensors; ++i) {
      if (places_[i].is_home) ask_for_large_pages(tensors_[i].tensor);
    }
  }
  for (std::size_t i = 0; i < tensors; ++i) {
    const at::Tensor& shown = places_[i].shown_updates;
    if (!shown.defined()) continue;
    const float count = *shown.const_data_ptr<float>();
    if (count != static_cast<float>(updates_[i])) updates_[i] = std::llround(count);
  }
  step_ = {.asked = true,
           .begun = true,
           .updates = updates,
           .classes = StepClasses(groups),
           .gathered = std::vector<char>(tensors, 0),
           .gradients = std::vector<const void*>(tensors, nullptr),
           .counted = std::vector<char>(tensors, 0),
           .arrived = std::vector<char>(tensors, 0),
           .missing = std::vector<int>(buckets, 0),
           .finished = std::vector<char>(buckets, 0),
           .used = std::vector<std::optional<GradientMark>>(tensors)};
  for (std::size_t b = 0; b < buckets; ++b) {
    // A frozen tensor is waited for as well: its bucket is not complete before step().
    for (const std::size_t s : slots_of_bucket_[b]) {
      const ParameterSlot& slot = layout_.slots[s];
      const int bucket = static_cast<int>(b);
      if (slot.first_bucket <= bucket && bucket <= slot.last_bucket) ++step_.missing[b];
    }
  }
}

void TensorEngine::end_step() {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const at::Tensor& shown = places_[i].shown_updates;
    if (shown.defined()) *shown.mutable_data_ptr<float>() = static_cast<float>(updates_[i]);
  }
  early_buckets_ = 0;
  for (const char finished : step_.finished) early_buckets_ += finished;
  step_ = {};
  for (Seen& seen : seen_) {
    seen.expected = std::max(std::exchange(seen.arrivals, 0), 1);
  }
  if (arrivals_) arrivals_->watch_new();
  if (passes_) passes_->end_update();
}

/// The gradient with the dtype and strides of the tensor's home; null without one.
const void* TensorEngine::gradient_of(std::size_t i) {
  const at::Tensor& gradient = tensors_[i].tensor.grad();
  if (!gradient.defined() || !can_step(i)) return nullptr;
  if (places_[i].is_home && is_laid_out(i, gradient)) return gradient.const_data_ptr();
  const bool is_sparse = gradient.layout() != at::kStrided;
  if (is_sparse && !takes_sparse_gradients(options_.engine.optimizer)) {
    fail_argument({.place = kGossip,
                   .what = "parameter '" + tensors_[i].name + "' has a sparse gradient",
                   .got = gradient.toString(),
                   .remedy = "use sparse=False in its layer, or SGD or SparseAdam"});
  }
  at::Tensor converted = at::empty_like(home_of(i));
  converted.copy_(is_sparse ? gradient.detach().to_dense() : gradient.detach());
  return step_.converted.emplace_back(std::move(converted)).const_data_ptr();
}

void TensorEngine::check_gradient(std::size_t i, const void* g) {
  const ParameterSlot& slot = layout_.slots[places_[i].slot];
  if (seen_[i].finite.is_of(tensors_[i].tensor.grad())) {
    step_.norm_squared.reset();
    return;
  }
  with_elements(slot.info.dtype, g, slot.count, [&](auto values) {
    const double squared = sum_squares(values);
    if (step_.norm_squared) *step_.norm_squared += squared;
    if (std::isfinite(squared) || all_finite(values)) return;
    const auto bad = std::ranges::find_if(values, [](auto value) { return !std::isfinite(value); });
    refuse_non_finite("parameter '" + tensors_[i].name + "'", engine_.collectives().rank(),
                      engine_.steps_done() + 1, static_cast<double>(*bad));
  });
}

/// Looks at the gradients of a bucket; touches nothing.
void TensorEngine::gather(std::size_t bucket) {
  for (const std::size_t s : slots_of_bucket_[bucket]) {
    const std::size_t i = tensor_of_slot_[s];
    if (step_.gathered[i] != 0) continue;
    check_place(i);
    const void* g = step_.updates ? gradient_of(i) : nullptr;
    if (g != nullptr && checks_itself()) check_gradient(i, g);
    step_.gradients[i] = g;
    step_.gathered[i] = 1;
  }
}

void TensorEngine::set_up(std::size_t bucket) {
  const auto segment = [this](std::size_t i) {
    const void* g = step_.gradients[i];
    if (g == nullptr) return segment_of(i, kNoStep, nullptr);
    if (std::exchange(step_.counted[i], 1) == 0) ++updates_[i];
    return segment_of(i, step_.classes.index_of(tensors_[i].group, updates_[i]), g);
  };
  engine_.set_segments(static_cast<int>(bucket), segments_of(bucket, segment));
}

void TensorEngine::check_unchanged() {
  std::vector<std::optional<GradientMark>> used(step_.used.size());
  used.swap(step_.used);  // once: the step can be ended without them
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i] || used[i]->is_of(tensors_[i].tensor.grad())) continue;
    fail_argument({.place = kGossip,
                   .what = "the gradient of parameter '" + tensors_[i].name + "' on worker " +
                           std::to_string(engine_.collectives().rank()) +
                           " was changed or removed between the backward and optimizer.step(), "
                           "but update=\"backward\" has used it already",
                   .remedy = "use update=\"step\" to clip, unscale or edit gradients, and call "
                             "zero_grad() after the step"});
  }
}

StepReport TensorEngine::step(std::span<const Hyper> groups, bool skip, double loss) {
  const at::NoGradGuard no_grad;
  if (step_.error) std::rethrow_exception(std::exchange(step_.error, nullptr));
  check_unchanged();
  const bool continues = step_.begun;
  if (skip) refuse_in_step("a step that only mixes");
  if (continues) {
    step_.gathered.assign(tensors_.size(), 0);
    step_.norm_squared.reset();
  } else {
    begin_step(groups, !skip && options_.engine.optimizer != "none");
  }
  const auto updates = updates_;
  const auto counted = step_.counted;
  try {
    const std::size_t buckets = layout_.buckets.size();
    for (std::size_t b = 0; b < buckets; ++b) {
      if (step_.finished[b] == 0) gather(b);
    }
    for (std::size_t b = 0; b < buckets; ++b) {
      if (step_.finished[b] == 0) set_up(b);
    }
    engine_.set_groups(step_.classes.all());
    if (stage_) stage_tensors();
    if (device_steps_ == DeviceSteps::copied) copy_in();
    if (is_behind()) take_all_changes();
    if (passes_) passes_->begin_update();
    StepReport report = engine_.step(loss);
    if (device_steps_ == DeviceSteps::copied) copy_out(Shown::trained);
    if (is_behind()) write_masters();
    if (checks_itself()) report.grad_norm = std::sqrt(step_.norm_squared.value_or(0));
    end_step();
    return report;
  } catch (...) {
    updates_ = updates;
    step_.counted = counted;
    if (!continues) step_ = {};
    throw;
  }
}

}  // namespace gossamer
