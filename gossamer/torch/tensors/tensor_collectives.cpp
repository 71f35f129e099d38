/// What the workers exchange of tensors that are not trained: buffers, frozen parameters.

#include <ATen/ATen.h>

#include <vector>

#include "gossamer/torch/tensors/tensor_engine.h"
#include "gossamer/torch/tensors/tensor_views.h"

namespace gossamer {
namespace {

constexpr std::int64_t kBytesAtOnce = std::int64_t{8} << 20;

/// Tensors one after the other in flat pieces of `dtype`, of at most `at_once` elements but for
/// larger ones; each piece is exchanged as one and goes back to where it came from.
template <class Exchange>
void exchange_flat(const std::vector<at::Tensor>& tensors, at::ScalarType dtype,
                   std::int64_t at_once, Exchange exchange) {
  for (std::size_t first = 0; first < tensors.size();) {
    std::int64_t count = tensors[first].numel();
    std::size_t last = first + 1;
    while (last < tensors.size() && count + tensors[last].numel() <= at_once) {
      count += tensors[last++].numel();
    }
    at::Tensor flat = at::empty({count}, at::dtype(dtype));
    const auto each = [&](auto work) {
      std::int64_t offset = 0;
      for (std::size_t i = first; i < last; ++i) {
        const at::Tensor& tensor = tensors[i];
        work(tensor, flat.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
        offset += tensor.numel();
      }
    };
    each([](const at::Tensor& tensor, const at::Tensor& place) { place.copy_(tensor); });
    exchange(flat);
    each([](const at::Tensor& tensor, const at::Tensor& place) { tensor.copy_(place); });
    first = last;
  }
}

}  // namespace

void TensorEngine::broadcast(std::span<const at::Tensor> tensors) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> copies;
  std::vector<at::Tensor> bytes;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor values = tensor.detach();
    copies.push_back(values.cpu().contiguous().clone());
    const at::Tensor& copy = copies.back();
    bytes.push_back(at::from_blob(
        copy.mutable_data_ptr(), {static_cast<std::int64_t>(copy.nbytes())}, at::dtype(at::kByte)));
  }
  exchange_flat(bytes, at::kByte, kBytesAtOnce, [this](at::Tensor& flat) {
    engine_.collectives().broadcast(
        {static_cast<std::byte*>(flat.mutable_data_ptr()), flat.nbytes()});
  });
  for (std::size_t i = 0; i < copies.size(); ++i) tensors[i].detach().copy_(copies[i]);
}

void TensorEngine::average(std::span<const at::Tensor> tensors) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> floats;
  for (const at::Tensor& tensor : tensors) {
    const bool has_mean = at::isFloatingType(tensor.scalar_type()) || tensor.is_complex();
    if (has_mean) floats.push_back(as_real(tensor.detach()));
  }
  constexpr auto kDoubles = kBytesAtOnce / static_cast<std::int64_t>(sizeof(double));
  exchange_flat(floats, at::kDouble, kDoubles, [this](at::Tensor& flat) {
    engine_.collectives().mean(
        {flat.mutable_data_ptr<double>(), static_cast<std::size_t>(flat.numel())});
  });
}

}  // namespace gossamer
