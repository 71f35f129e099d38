#include "gossamer/torch/tensor_views.h"

#include <ATen/ATen.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "gossamer/torch/tensor_types.h"

namespace gossamer {
namespace {

constexpr std::size_t kLargePage = std::size_t{2} << 20;

/// Large arrays lie in large pages where the system gives them on request: a sweep over pages of
/// 4 KiB waits for address translations.
at::Tensor zero_array(const ArrayLayout& array) {
  const auto options = at::dtype(to_scalar_type(array.dtype));
  const std::size_t bytes = static_cast<std::size_t>(array.count) * size_of(array.dtype);
  if (bytes < 2 * kLargePage) return at::zeros({array.count}, options);
  const std::size_t whole = (bytes + kLargePage - 1) / kLargePage * kLargePage;
  void* memory = std::aligned_alloc(kLargePage, whole);
  if (memory == nullptr) throw std::bad_alloc();
  madvise(memory, whole, MADV_HUGEPAGE);  // where it is refused, small pages do
  std::memset(memory, 0, whole);
  return at::from_blob(memory, {array.count}, [](void* data) { std::free(data); }, options);
}

}  // namespace

DType mixing_dtype(const at::Tensor& tensor) {
  const auto type = tensor.scalar_type();
  return type == at::kDouble || type == at::kComplexDouble ? DType::f64 : DType::f32;
}

at::Tensor as_real(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor) : tensor;
}

at::Tensor view_like(const at::Tensor& array, std::int64_t offset, const at::Tensor& like) {
  if (like.is_non_overlapping_and_dense()) {
    return array.as_strided(like.sizes(), like.strides(), offset);
  }
  return array.narrow(0, offset, like.numel()).view(like.sizes());
}

std::vector<at::Tensor> zero_arrays(const FlatLayout& layout) {
  std::vector<at::Tensor> arrays;
  for (const ArrayLayout& array : layout.arrays) {
    arrays.push_back(zero_array(array));
  }
  return arrays;
}

}  // namespace gossamer
