/// What the workers exchange of tensors that are not trained: buffers, frozen parameters.

#include <ATen/ATen.h>

#include "gossamer/torch/tensor_engine.h"

namespace gossamer {

void TensorEngine::broadcast(std::span<const at::Tensor> tensors) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& tensor : tensors) {
    at::Tensor copy = tensor.detach().cpu().contiguous().clone();
    engine_.collectives().broadcast(
        {static_cast<std::byte*>(copy.mutable_data_ptr()), copy.nbytes()});
    tensor.detach().copy_(copy);
  }
}

void TensorEngine::average(std::span<const at::Tensor> tensors) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& tensor : tensors) {
    if (!at::isFloatingType(tensor.scalar_type())) continue;
    at::Tensor wide = tensor.detach().cpu().to(at::kDouble).contiguous().clone();
    engine_.collectives().mean(
        {wide.mutable_data_ptr<double>(), static_cast<std::size_t>(wide.numel())});
    tensor.detach().copy_(wide);
  }
}

}  // namespace gossamer
