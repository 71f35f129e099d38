#pragma once
/// The element types of Gossamer in torch's terms, and the name of its door to PyTorch.

#include <c10/core/ScalarType.h>

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

}  // namespace gossamer
