#pragma once
/// The element types of Gossamer in torch's terms, and the name of its door to PyTorch.

#include <c10/core/ScalarType.h>

#include <string_view>

#include "gossamer/base/dtype.h"

namespace gossamer {

/// Where errors of the PyTorch door say that they happened.
inline constexpr const char* kGossip = "Gossip";

constexpr c10::ScalarType to_scalar_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return c10::ScalarType::Float;
    case DType::f64:
      return c10::ScalarType::Double;
  }
  __builtin_unreachable();
}

/// The word of the safetensors format for an element type; empty for what it does not have.
constexpr std::string_view tensor_dtype_of(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Float:
      return "F32";
    case c10::ScalarType::Double:
      return "F64";
    case c10::ScalarType::Half:
      return "F16";
    case c10::ScalarType::BFloat16:
      return "BF16";
    case c10::ScalarType::Long:
      return "I64";
    case c10::ScalarType::Int:
      return "I32";
    case c10::ScalarType::Short:
      return "I16";
    case c10::ScalarType::Char:
      return "I8";
    case c10::ScalarType::Byte:
      return "U8";
    case c10::ScalarType::Bool:
      return "BOOL";
    default:
      return "";
  }
}

}  // namespace gossamer
