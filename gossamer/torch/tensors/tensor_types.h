#pragma once
/// The element types of Gossamer in torch's terms, and the name of its door to PyTorch.

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <iterator>
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

/// One element type of tensors in files.
struct TensorTypeRow {
  c10::ScalarType type;
  std::string_view word;   ///< of the safetensors format
  std::string_view torch;  ///< what Python calls it, after "torch."
};

inline constexpr TensorTypeRow kTensorTypes[] = {
    {c10::ScalarType::Float, "F32", "float32"},
    {c10::ScalarType::Double, "F64", "float64"},
    {c10::ScalarType::Half, "F16", "float16"},
    {c10::ScalarType::BFloat16, "BF16", "bfloat16"},
    {c10::ScalarType::Float8_e4m3fn, "F8_E4M3", "float8_e4m3fn"},
    {c10::ScalarType::Float8_e5m2, "F8_E5M2", "float8_e5m2"},
    {c10::ScalarType::Long, "I64", "int64"},
    {c10::ScalarType::Int, "I32", "int32"},
    {c10::ScalarType::Short, "I16", "int16"},
    {c10::ScalarType::Char, "I8", "int8"},
    {c10::ScalarType::UInt64, "U64", "uint64"},
    {c10::ScalarType::UInt32, "U32", "uint32"},
    {c10::ScalarType::UInt16, "U16", "uint16"},
    {c10::ScalarType::Byte, "U8", "uint8"},
    {c10::ScalarType::ComplexFloat, "C64", "complex64"},
    {c10::ScalarType::Bool, "BOOL", "bool"},
};

/// Null for an element type that the safetensors format does not have.
constexpr const TensorTypeRow* find_tensor_type(c10::ScalarType type) {
  const auto* const row = std::ranges::find(kTensorTypes, type, &TensorTypeRow::type);
  return row == std::end(kTensorTypes) ? nullptr : row;
}

/// Null for a word that the safetensors format does not have.
constexpr const TensorTypeRow* find_tensor_type(std::string_view word) {
  const auto* const row = std::ranges::find(kTensorTypes, word, &TensorTypeRow::word);
  return row == std::end(kTensorTypes) ? nullptr : row;
}

}  // namespace gossamer
