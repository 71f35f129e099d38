#pragma once
/// How tensors of any dtype and strides lie in flat arrays of float32 and float64.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "gossamer/base/dtype.h"
#include "gossamer/torch/tensors/flat_layout.h"

namespace gossamer {

/// The element type in which a tensor is mixed; complex numbers are pairs of them.
DType mixing_dtype(const at::Tensor& tensor);

/// A complex tensor as real pairs, any other as it is.
at::Tensor as_real(const at::Tensor& tensor);

/// The elements from `offset` of a flat array with the sizes of `like`, and with its strides where
/// these leave no gaps.
at::Tensor view_like(const at::Tensor& array, std::int64_t offset, const at::Tensor& like);

/// Zeros with the dtype, sizes and strides of a dense tensor, in a storage of their own.
at::Tensor large_zeros_like(const at::Tensor& like);

/// Moves a large tensor into large pages without changing its address, where the system can: a
/// sweep over pages of 4 KiB waits for address translations.
void ask_for_large_pages(const at::Tensor& tensor);

/// One array of zeros for each array of the layout.
std::vector<at::Tensor> zero_arrays(const FlatLayout& layout);

}  // namespace gossamer
