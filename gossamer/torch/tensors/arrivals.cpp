#include "gossamer/torch/tensors/arrivals.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace gossamer {
namespace {

// How torch keeps a node of the graph: an intrusive pointer or, before 2.12, a shared one.
using Accumulator =
    decltype(torch::autograd::impl::grad_accumulator(std::declval<const at::Tensor&>()));

/// A number made of four elements.
std::uint64_t sample_of(const at::Tensor& tensor) {
  const bool readable = tensor.device().is_cpu() && tensor.layout() == at::kStrided &&
                        tensor.is_non_overlapping_and_dense() && tensor.numel() > 0;
  if (!readable) return 0;
  const auto* data = static_cast<const std::byte*>(tensor.const_data_ptr());
  const auto size = static_cast<std::size_t>(tensor.element_size());
  const auto last = static_cast<std::size_t>(tensor.numel()) - 1;
  std::uint64_t sample = 0;
  for (const std::size_t element : {std::size_t{0}, last / 3, last - last / 3, last}) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, data + element * size, std::min(size, sizeof bits));
    sample = (sample ^ bits) * 0x9e3779b97f4a7c15U;
  }
  return sample;
}

/// Null for a sparse one.
const void* data_of(const at::Tensor& gradient) {
  return gradient.layout() == at::kStrided ? gradient.const_data_ptr() : nullptr;
}

/// Null where the tensor can have no gradient.
Accumulator accumulator_of(const at::Tensor& tensor) {
  using torch::autograd::impl::grad_accumulator;
  if (tensor.requires_grad()) return grad_accumulator(tensor);
  if (!torch::autograd::isDifferentiableType(tensor.scalar_type()) || tensor.is_inference()) {
    return {};
  }
  tensor.set_requires_grad(true);  // for a moment: a frozen tensor is given none
  auto accumulator = grad_accumulator(tensor);
  tensor.set_requires_grad(false);
  return accumulator;
}

}  // namespace

GradientMark::GradientMark(const at::Tensor& gradient) {
  if (!gradient.defined() || gradient.is_inference()) return;  // those have no version
  tensor_ = Weak(gradient.getIntrusivePtr());
  data_ = data_of(gradient);
  version_ = gradient._version();
  sample_ = sample_of(gradient);
}

bool GradientMark::is_in(const at::Tensor& gradient) const {
  return version_ >= 0 && gradient.defined() &&
         tensor_._unsafe_get_target() == gradient.unsafeGetTensorImpl();
}

bool GradientMark::is_of(const at::Tensor& gradient) const {
  return is_in(gradient) && data_ == data_of(gradient) && version_ == gradient._version() &&
         sample_ == sample_of(gradient);
}

struct Arrivals::Hook {
  Accumulator accumulator;  // else the tensor lets go of it
  std::uintptr_t key = 0;

  ~Hook() { accumulator->del_post_hook(key); }
};

Arrivals::Arrivals(std::vector<at::Tensor> tensors, OnArrival on_arrival, OnArrival on_compiled)
    : tensors_(std::move(tensors)),
      listeners_(std::make_shared<const Listeners>(std::move(on_arrival), std::move(on_compiled))),
      hooks_(tensors_.size()) {
  watch_new();
}

Arrivals::~Arrivals() = default;

void Arrivals::watch_new() {
  using torch::autograd::utils::LambdaPostHook;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const auto current = torch::autograd::impl::try_get_grad_accumulator(tensors_[i]);
    if (hooks_[i] && hooks_[i]->accumulator == current) continue;
    hooks_[i].reset();
    auto accumulator = accumulator_of(tensors_[i]);
    if (!accumulator) continue;
    const std::weak_ptr<const Listeners> weak = listeners_;
    const auto call = [weak, i](const auto& outputs, const auto&) {
      if (const auto alive = weak.lock()) alive->arrived(i);
      return outputs;
    };
    const auto compiled = [weak, i](torch::autograd::CompiledNodeArgs&) {
      const auto alive = weak.lock();
      if (alive && alive->compiled) alive->compiled(i);
    };
    const auto key = accumulator->add_post_hook(std::make_unique<LambdaPostHook>(call, compiled));
    hooks_[i] = std::make_unique<Hook>(std::move(accumulator), key);
  }
}

}  // namespace gossamer
