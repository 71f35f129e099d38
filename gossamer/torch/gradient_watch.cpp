#include "gossamer/torch/gradient_watch.h"

#include <torch/nn/module.h>

#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/torch/model.h"

namespace gossamer {

std::vector<std::string> completion_order(const Model& model, const Batch& batch) {
  std::vector<std::string> names;
  std::vector<at::Tensor> tensors;
  for (const auto& item : model.module->named_parameters()) {
    if (!item.value().requires_grad()) continue;
    names.push_back(item.key());
    tensors.push_back(item.value());
  }
  std::vector<std::string> order;
  const Arrivals arrivals(std::move(tensors), [&](std::size_t i) { order.push_back(names[i]); });
  loss_of(model, batch).backward();
  return order;
}

GradientWatch::GradientWatch(const FlatParameters& flat, std::function<void(int)> ready)
    : flat_(flat),
      ready_(std::move(ready)),
      parameters_of_bucket_(flat.layout.buckets.size(), 0),
      arrived_(flat.layout.slots.size(), false),
      arrivals_(flat.parameters, [this](std::size_t s) { arrive(s); }) {
  for (const ParameterSlot& slot : flat_.layout.slots) {
    for (int b = slot.first_bucket; b >= 0 && b <= slot.last_bucket; ++b) {
      ++parameters_of_bucket_[static_cast<std::size_t>(b)];
    }
  }
}

void GradientWatch::report(int bucket) {
  missing_[static_cast<std::size_t>(bucket)] = -1;
  ready_(bucket);
}

void GradientWatch::arrive(std::size_t slot_index) {
  if (!active_) return;
  const ParameterSlot& slot = flat_.layout.slots[slot_index];
  if (arrived_[slot_index]) {
    fail_argument({.place = "gradient watch",
                   .what = "a second gradient arrived for parameter '" + slot.info.name + "'",
                   .remedy = "call begin_backward() only before the last backward pass of a "
                             "step, and backward() once until finish_backward()"});
  }
  arrived_[slot_index] = true;
  for (int b = slot.first_bucket; b >= 0 && b <= slot.last_bucket; ++b) {
    if (--missing_[static_cast<std::size_t>(b)] == 0) report(b);
  }
}

void GradientWatch::begin_backward() {
  missing_ = parameters_of_bucket_;
  arrived_.assign(arrived_.size(), false);
  active_ = true;
}

void GradientWatch::finish_backward() {
  active_ = false;
  for (std::size_t b = 0; b < missing_.size(); ++b) {
    if (missing_[b] >= 0) report(static_cast<int>(b));
  }
}

}  // namespace gossamer
