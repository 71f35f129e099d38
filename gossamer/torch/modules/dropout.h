#pragma once
/// Dropout without torch's global generator: masks are a pure function of a seed.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gossamer {

/// The masks of one forward pass, one after the other: two passes with equal seeds and shapes give
/// equal bits, on every worker and thread.
class Dropout {
 public:
  /// `rate`: the share of elements that become 0, in steps of 2⁻¹⁶; 0 leaves everything as it is.
  /// Throws std::invalid_argument unless 0 ≤ rate < 1.
  Dropout(double rate, std::uint64_t seed);

  /// x with some elements 0 and the others times 1/(1 − rate).
  at::Tensor operator()(const at::Tensor& x);

 private:
  double rate_;
  std::uint64_t seed_;
  std::uint64_t masks_ = 0;
};

}  // namespace gossamer
