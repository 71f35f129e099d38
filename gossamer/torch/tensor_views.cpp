#include "gossamer/torch/tensor_views.h"

#include <ATen/ATen.h>

#include "gossamer/torch/tensor_types.h"

namespace gossamer {

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
    arrays.push_back(at::zeros({array.count}, at::dtype(to_scalar_type(array.dtype))));
  }
  return arrays;
}

}  // namespace gossamer
