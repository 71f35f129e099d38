#include "gossamer/torch/tensors/tensor_files.h"

#include <ATen/ATen.h>

#include <cstring>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {

TensorView view_of_tensor(std::string name, const at::Tensor& tensor) {
  const TensorTypeRow* const row = find_tensor_type(tensor.scalar_type());
  const bool fits = row != nullptr && tensor.layout() == at::kStrided && tensor.is_cpu() &&
                    tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
  if (!fits) {
    fail_argument({.place = kGossip,
                   .what = "a file keeps contiguous tensors in CPU memory of plain dtypes",
                   .got = std::string(c10::toString(tensor.scalar_type())) + " for '" + name + "'",
                   .remedy = "convert it, or save it beside"});
  }
  return {std::move(name),
          std::string(row->word),
          tensor.sizes().vec(),
          {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

at::Tensor tensor_in(const std::shared_ptr<const SafetensorsFile>& file, const std::string& name) {
  const TensorView& view = file->at(name);
  const TensorTypeRow* const row = find_tensor_type(view.dtype);
  GOSSAMER_ASSERT(row != nullptr);  // the reader refuses others
  const auto options = at::TensorOptions().dtype(row->type).device(at::kCPU);
  auto* const data = const_cast<std::byte*>(view.data.data());
  // Others than Gossamer may lay out files without a thought of alignment.
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (view.data.empty() || address % c10::elementSize(row->type) != 0) {
    at::Tensor copy = at::empty(view.shape, options);
    if (!view.data.empty()) std::memcpy(copy.mutable_data_ptr(), data, view.data.size());
    return copy;
  }
  return at::from_blob(data, view.shape, [keeps = file](void*) {}, options);
}

}  // namespace gossamer
