#include "gossamer/torch/arrivals.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace gossamer {
namespace {

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

}  // namespace

GradientMark::GradientMark(const at::Tensor& gradient) {
  if (!gradient.defined() || gradient.is_inference()) return;  // those have no version
  tensor_ = Weak(gradient.getIntrusivePtr());
  data_ = gradient.const_data_ptr();
  version_ = gradient._version();
  sample_ = sample_of(gradient);
}

bool GradientMark::is_of(const at::Tensor& gradient) const {
  return version_ >= 0 && gradient.defined() &&
         tensor_._unsafe_get_target() == gradient.unsafeGetTensorImpl() &&
         data_ == gradient.const_data_ptr() && version_ == gradient._version() &&
         sample_ == sample_of(gradient);
}

struct Arrivals::Hook {
  c10::intrusive_ptr<torch::autograd::Node> accumulator;  // else the tensor lets go of it
  std::uintptr_t key = 0;

  ~Hook() { accumulator->del_post_hook(key); }
};

Arrivals::Arrivals(std::vector<at::Tensor> tensors, OnArrival on_arrival)
    : tensors_(std::move(tensors)),
      on_arrival_(std::make_shared<const OnArrival>(std::move(on_arrival))),
      hooks_(tensors_.size()) {
  watch_new();
}

Arrivals::~Arrivals() = default;

void Arrivals::watch_new() {
  using torch::autograd::utils::LambdaPostHook;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (hooks_[i] || !tensors_[i].requires_grad()) continue;
    const std::weak_ptr<const OnArrival> weak = on_arrival_;
    const auto call = [weak, i](const auto& outputs, const auto&) {
      if (const auto on_arrival = weak.lock()) (*on_arrival)(i);
      return outputs;
    };
    const auto compiled = [](torch::autograd::CompiledNodeArgs&) {};
    auto accumulator = torch::autograd::impl::grad_accumulator(tensors_[i]);
    const auto key = accumulator->add_post_hook(std::make_unique<LambdaPostHook>(call, compiled));
    hooks_[i] = std::make_unique<Hook>(std::move(accumulator), key);
  }
}

}  // namespace gossamer
