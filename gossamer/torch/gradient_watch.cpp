#include "gossamer/torch/gradient_watch.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/module.h>

#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/torch/model.h"

namespace gossamer {

struct GradientWatch::State {
  FlatParameters flat;
  std::function<void(int)> ready;
  std::vector<int> parameters_of_bucket;
  std::vector<int> missing;  // per bucket, counted down; −1 when reported
  std::vector<bool> arrived;
  bool active = false;

  void report(int bucket) {
    missing[static_cast<std::size_t>(bucket)] = -1;
    ready(bucket);
  }

  void arrive(std::size_t slot_index) {
    if (!active) return;
    const ParameterSlot& slot = flat.layout.slots[slot_index];
    if (arrived[slot_index]) {
      fail_argument({.place = "gradient watch",
                     .what = "a second gradient arrived for parameter '" + slot.info.name + "'",
                     .remedy = "call begin_backward() only before the last backward pass of a "
                               "step, and backward() once until finish_backward()"});
    }
    arrived[slot_index] = true;
    for (int b = slot.first_bucket; b >= 0 && b <= slot.last_bucket; ++b) {
      if (--missing[static_cast<std::size_t>(b)] == 0) report(b);
    }
  }
};

namespace {

struct ArrivalHook final : torch::autograd::PostAccumulateGradHook {
  explicit ArrivalHook(std::function<void()> on_arrival) : arrive(std::move(on_arrival)) {}
  void operator()(const torch::autograd::Variable&) override { arrive(); }
  std::function<void()> arrive;
};

}  // namespace

std::vector<std::string> completion_order(const Model& model, const Batch& batch) {
  std::vector<std::string> order;
  auto parameters = model.module->named_parameters();
  for (auto& item : parameters) {
    if (!item.value().requires_grad()) continue;
    auto note = [&order, name = item.key()] { order.push_back(name); };
    torch::autograd::impl::set_post_acc_grad_hooks(item.value(),
                                                   std::make_unique<ArrivalHook>(std::move(note)));
  }
  loss_of(model, batch).backward();
  for (auto& item : parameters) {
    torch::autograd::impl::set_post_acc_grad_hooks(item.value(), nullptr);
  }
  return order;
}

GradientWatch::GradientWatch(const FlatParameters& flat, std::function<void(int)> ready)
    : state_(std::make_shared<State>()) {
  state_->flat = flat;
  state_->ready = std::move(ready);
  state_->parameters_of_bucket.assign(flat.layout.buckets.size(), 0);
  state_->arrived.assign(flat.layout.slots.size(), false);
  for (const at::Tensor& parameter : flat.parameters) {
    if (!torch::autograd::impl::post_acc_grad_hooks(parameter)) continue;
    fail_argument({.place = "gradient watch",
                   .what = "a parameter already has a post-accumulate hook",
                   .remedy = "remove the other hook, or step after the backward pass"});
  }
  for (std::size_t s = 0; s < flat.layout.slots.size(); ++s) {
    const ParameterSlot& slot = flat.layout.slots[s];
    for (int b = slot.first_bucket; b >= 0 && b <= slot.last_bucket; ++b) {
      ++state_->parameters_of_bucket[static_cast<std::size_t>(b)];
    }
    torch::autograd::impl::set_post_acc_grad_hooks(
        flat.parameters[s],
        std::make_unique<ArrivalHook>([state = state_.get(), s] { state->arrive(s); }));
  }
}

GradientWatch::~GradientWatch() {
  for (const at::Tensor& parameter : state_->flat.parameters) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
  }
}

void GradientWatch::begin_backward() {
  state_->missing = state_->parameters_of_bucket;
  state_->arrived.assign(state_->arrived.size(), false);
  state_->active = true;
}

void GradientWatch::finish_backward() {
  state_->active = false;
  for (std::size_t b = 0; b < state_->missing.size(); ++b) {
    if (state_->missing[b] >= 0) state_->report(static_cast<int>(b));
  }
}

}  // namespace gossamer
