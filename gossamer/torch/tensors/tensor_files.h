#pragma once
/// Tensors of torch in files of the safetensors format.

#include <ATen/core/TensorBody.h>

#include <memory>
#include <string>

#include "gossamer/checkpoint/safetensors.h"

namespace gossamer {

/// The memory of a contiguous tensor, which the caller keeps. Throws std::invalid_argument for
/// another layout, another device, and a dtype that the format does not have.
TensorView view_of_tensor(std::string name, const at::Tensor& tensor);

/// A tensor of a file, in the file's memory, which it keeps; nobody must write into it. Throws
/// IoError where there is none.
at::Tensor tensor_in(const std::shared_ptr<const SafetensorsFile>& file, const std::string& name);

}  // namespace gossamer
