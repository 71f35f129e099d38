#pragma once
/// Sinusoidal positions (Vaswani et al. 2017).

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gossamer {

/// [positions, width], f64: sin in even columns and cos in odd ones, of wavelengths from 2π to
/// 2π·10⁴.
at::Tensor sinusoids(std::int64_t positions, std::int64_t width);

}  // namespace gossamer
