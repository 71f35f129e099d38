#pragma once
/// The steps of the optimizers for one element: from mixed and the old x to the new x. See
/// Note [One loop, many instruction sets] in fused_loop.h; formulas in mix_*.h.

#include "gossamer/kernels/fused_loop.h"

namespace gossamer {
namespace {

template <class T>
struct KeepMixed {
  [[gnu::always_inline]] T operator()(T mixed, T, std::size_t) const { return mixed; }
};

template <class T>
struct SgdRule {
  SgdArgs<T> a;

  [[gnu::always_inline]] T operator()(T mixed, T x, std::size_t i) const {
    T g = a.grad_scale * a.g[i];
    g = a.weight_decay != 0 ? fma(a.weight_decay, x, g) : g;
    return fma(a.minus_lr, g, mixed);
  }
};

template <class T, bool FirstStep, bool Nesterov>
struct MomentumRule {
  MomentumArgs<T> a;

  [[gnu::always_inline]] T operator()(T mixed, T x, std::size_t i) const {
    T g = a.grad_scale * a.g[i];
    g = a.weight_decay != 0 ? fma(a.weight_decay, x, g) : g;
    const T buf = FirstStep ? g : fma(a.one_minus_dampening, g, a.momentum * a.buf[i]);
    a.buf[i] = buf;
    return fma(a.minus_lr, Nesterov ? fma(a.momentum, buf, g) : buf, mixed);
  }
};

/// The gradient that the moments see.
template <class T>
[[gnu::always_inline]] inline T adam_gradient(const AdamArgs<T>& a, T x, std::size_t i) {
  const T g = a.grad_scale * a.g[i];
  return a.coupled_decay != 0 ? fma(a.coupled_decay, x, g) : g;
}

/// The new x from the moments that the step uses.
template <class T>
[[gnu::always_inline]] inline T adam_step(const AdamArgs<T>& a, T mixed, T x, T m, T v) {
  const T base = a.minus_decay != 0 ? fma(a.minus_decay, x, mixed) : mixed;
  return fma(a.minus_step, m / fma(root(v), a.root_correction, a.eps), base);
}

/// The second moment after a gradient, which has made the first moment m.
template <class T>
[[gnu::always_inline]] inline T adam_second(const AdamArgs<T>& a, T kept, T g, T m) {
  if (a.signal == 0) return fma(a.one_minus_beta2 * g, g, kept);
  return fma(a.one_minus_beta2, fma(a.signal * m, m, a.noise * g * g), kept);
}

template <class T>
struct AdamRule {
  AdamArgs<T> a;

  [[gnu::always_inline]] T operator()(T mixed, T x, std::size_t i) const {
    const T g = adam_gradient(a, x, i);
    const T m = fma(a.one_minus_beta1, g, a.beta1 * a.m[i]);
    const T v = adam_second(a, a.beta2 * a.v[i], g, m);
    a.m[i] = m;
    a.v[i] = v;
    return adam_step(a, mixed, x, m, v);
  }
};

template <class T, AccumPhase Phase>
struct AccumAdamRule {
  static constexpr bool kReadsB = Phase == AccumPhase::middle || Phase == AccumPhase::last;
  static constexpr bool kWritesB = Phase == AccumPhase::first || Phase == AccumPhase::middle;
  AdamArgs<T> a;
  T* b;
  T inverse_period;

  [[gnu::always_inline]] T operator()(T mixed, T x, std::size_t i) const {
    const T g = adam_gradient(a, x, i);
    const T kept_m = a.beta1 * a.m[i];
    const T kept_v = a.beta2 * a.v[i];
    const T sum = kReadsB ? fma(inverse_period, g, b[i]) : inverse_period * g;
    if constexpr (kWritesB) {
      b[i] = sum;
    } else {
      const T absorbed = fma(a.one_minus_beta1, sum, kept_m);
      a.m[i] = absorbed;
      a.v[i] = adam_second(a, kept_v, sum, absorbed);
    }
    const T m = fma(a.one_minus_beta1, g, kept_m);
    return adam_step(a, mixed, x, m, adam_second(a, kept_v, g, m));
  }
};

template <class T>
constexpr bool kSetsB<AccumAdamRule<T, AccumPhase::first>> = true;

}  // namespace
}  // namespace gossamer
