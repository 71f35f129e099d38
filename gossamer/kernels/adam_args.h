#pragma once
/// The coefficients that Adam and AccumAdam share. Internal.

#include <cmath>
#include <cstdint>

#include "gossamer/kernels/kernel_table.h"

namespace gossamer {

/// Step is AdamStep or AccumAdamStep; `t` is the exponent of the bias corrections. The buffers are
/// left for the caller to set.
template <class T, class Step>
AdamArgs<T> adam_args(const Step& step, std::int64_t t) {
  const double exponent = static_cast<double>(t);
  const double correction1 = 1 - std::pow(step.beta1, exponent);
  const double correction2 = 1 - std::pow(step.beta2, exponent);
  AdamArgs<T> args;
  args.grad_scale = static_cast<T>(step.grad_scale);
  args.beta1 = static_cast<T>(step.beta1);
  args.beta2 = static_cast<T>(step.beta2);
  args.one_minus_beta1 = static_cast<T>(1 - step.beta1);
  args.one_minus_beta2 = static_cast<T>(1 - step.beta2);
  args.minus_step = static_cast<T>(-step.lr / correction1);
  args.root_correction = static_cast<T>(1 / std::sqrt(correction2));
  if (step.noise_share != 1) {
    args.noise = static_cast<T>(step.noise_share);
    args.signal = static_cast<T>((1 - step.noise_share) / (correction1 * correction1));
  }
  args.eps = static_cast<T>(step.eps);
  args.coupled_decay = static_cast<T>(step.decoupled ? 0 : step.weight_decay);
  // torch scales x by the rounded factor 1 − lr·weight_decay; its difference to 1 is exact, so that
  // without sources fma(minus_decay, x, x) is that product to the bit.
  const auto factor = static_cast<T>(1 - step.lr * step.weight_decay);
  args.minus_decay = step.decoupled ? factor - T{1} : T{0};
  return args;
}

}  // namespace gossamer
