#pragma once
/// The scalar kernels: the oracle of the fast ones, and what runs where those cannot. Internal.

#include <cmath>

#include "gossamer/kernels/kernel_table.h"

namespace gossamer::ref {

template <class T>
double mix_only(Range range, const MixArgs<T>& mix);
template <class T>
double mix_sgd(Range range, const MixArgs<T>& mix, const SgdArgs<T>& step);
template <class T>
double mix_momentum(Range range, const MixArgs<T>& mix, const MomentumArgs<T>& step);
template <class T>
double mix_adam(Range range, const MixArgs<T>& mix, const AdamArgs<T>& step);
template <class T>
double mix_accum_adam(Range range, const MixArgs<T>& mix, const AccumAdamArgs<T>& step);
template <class T>
void sum_into(Range range, const SumArgs<T>& sum);
template <class T>
double sum_squares(Range range, const T* a);
template <class T>
double distance_squares(Range range, const T* a, const T* b);
template <class T>
bool all_finite(Range range, const T* a);
template <class T>
void encode_bf16(const Encoding<T>& job);
template <class T>
void encode_int8(const Encoding<T>& job);
template <class T>
void decode_bf16(const Decoding<T>& job);
template <class T>
void decode_int8(const Decoding<T>& job);
template <class T>
void decode_add_bf16(const Decoding<T>& job);
template <class T>
void decode_add_int8(const Decoding<T>& job);
void round_bf16(const Rounding& job);
void round_fp16(const Rounding& job);
void copy(void* destination, const void* source, std::size_t bytes);

/// The second moment after gradient g, which has made the first moment m; `kept` is β₂ v.
template <class T>
T adam_second(const AdamArgs<T>& adam, T kept, T g, T m) {
  if (adam.signal == 0) return std::fma(adam.one_minus_beta2 * g, g, kept);
  return std::fma(adam.one_minus_beta2, std::fma(adam.signal * m, m, adam.noise * g * g), kept);
}

/// mixed of one element.
template <class T>
T mixed_at(const MixArgs<T>& mix, std::size_t i);

/// Σ d² in the order of Note [Lanes].
class Lanes {
 public:
  void add(double d) { lanes_[next_++ % 32] += d * d; }
  double fold() const;

 private:
  double lanes_[32] = {};
  std::size_t next_ = 0;
};

}  // namespace gossamer::ref
