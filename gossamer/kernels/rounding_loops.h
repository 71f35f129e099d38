#pragma once
/// The loops of rounding at random; see Note [One loop, many instruction sets] in fused_loop.h, of
/// which this is one more file. The contract is in random_rounding.h.

#include "gossamer/kernels/kernel_table.h"

namespace gossamer {
namespace {

/// See random_rounding_ref.cpp. Words of 32 bits, which every vector unit multiplies.
[[gnu::always_inline]] inline unsigned random_bits(unsigned i, unsigned first, unsigned second) {
  unsigned h = i ^ first;
  h = (h ^ (h >> 16)) * 0x7feb352dU;
  h = ((h ^ (h >> 15)) + second) * 0x846ca68bU;
  return h >> 16;
}

/// A carry out of the bits that go is the step to the upper neighbour.
[[gnu::always_inline]] inline unsigned bf16_code(float x, unsigned random) {
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  const unsigned magnitude = bits & 0x7FFFFFFFU;
  const unsigned raised = magnitude + random;
  const unsigned finite = raised < 0x7F800000U ? raised : 0x7F7F0000U;
  const unsigned special = magnitude > 0x7F800000U ? 0x7FC00000U : 0x7F800000U;
  const unsigned kept = magnitude < 0x7F800000U ? finite : special;
  return (kept | (bits & 0x80000000U)) >> 16;
}

/// Likewise; numbers below the smallest normal one lie in steps of 2⁻²⁴, and go through those.
[[gnu::always_inline]] inline unsigned fp16_code(float x, unsigned random) {
  const unsigned bits = __builtin_bit_cast(unsigned, x);
  const unsigned magnitude = bits & 0x7FFFFFFFU;
  const unsigned drawn = random >> 3;  // thirteen bits go
  const unsigned rebiased = (magnitude + drawn - (112U << 23)) >> 13;
  const unsigned normal = rebiased < 0x7BFFU ? rebiased : 0x7BFFU;
  const bool is_small = magnitude < 0x38800000U;
  const float small = __builtin_bit_cast(float, is_small ? magnitude : 0U);
  const float steps = small * 0x1p24F + static_cast<float>(static_cast<int>(drawn)) * 0x1p-13F;
  const unsigned finite = is_small ? static_cast<unsigned>(static_cast<int>(steps)) : normal;
  const unsigned special = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
  return (magnitude < 0x7F800000U ? finite : special) | ((bits & 0x80000000U) >> 16);
}

template <unsigned (*kCode)(float, unsigned)>
void fast_round(const Rounding& job) {
  const float* const x = job.x;
  unsigned short* const to = job.to;
  const unsigned first = job.first;
  const unsigned second = job.second;
  const unsigned count = static_cast<unsigned>(job.count);
#pragma GCC ivdep
  for (unsigned i = 0; i < count; ++i) {
    to[i] = static_cast<unsigned short>(kCode(x[i], random_bits(i, first, second)));
  }
}

}  // namespace
}  // namespace gossamer
