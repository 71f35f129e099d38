#pragma once
/// The loops of the codecs; see Note [One loop, many instruction sets] in fused_loop.h, of which
/// this is one more file. Contracts are in codec.h.

#include <cstddef>

#include "gossamer/base/codec.h"
#include "gossamer/kernels/fused_loop.h"

namespace gossamer {
namespace {

[[gnu::always_inline]] inline float float_of(unsigned bits) {
  return __builtin_bit_cast(float, bits);
}

/// The upper half of a float, ties to even. A NaN is made quiet, so that a bit of it is left.
[[gnu::always_inline]] inline unsigned short to_bf16(float v) {
  const unsigned bits = __builtin_bit_cast(unsigned, v);
  const unsigned rounded = bits + 0x7FFFU + ((bits >> 16) & 1U);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return static_cast<unsigned short>((is_nan ? bits | 0x400000U : rounded) >> 16);
}

[[gnu::always_inline]] inline float from_bf16(unsigned short upper) {
  return float_of(static_cast<unsigned>(upper) << 16);
}

template <class T, bool HasKept, bool HasError>
void encode_bf16(const Encoding<T>& job) {
  const T* const x = job.x;
  unsigned char* const coded = job.coded;
  T* const kept = job.kept;
  T* const error = job.error;
  const T own = job.own;
  const T keep = job.keep;
  const std::size_t count = job.count;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const T old = x[i];
    T v = old;
    if constexpr (HasError) v += error[i];
    const unsigned short upper = to_bf16(static_cast<float>(v));
    __builtin_memcpy(coded + 2 * i, &upper, sizeof upper);
    const T decoded = static_cast<T>(from_bf16(upper));
    if constexpr (HasError) error[i] = v - decoded;
    if constexpr (HasKept) kept[i] = fma(keep, old - decoded, own * old);
  }
}

/// What a block of int8 is coded with.
struct BlockScale {
  float scale;
  float inverse;
  unsigned mask;  ///< leaves nothing of the codes where the scale is NaN
};

[[gnu::always_inline]] inline BlockScale block_scale(unsigned largest_bits) {
  if (largest_bits >= 0x7F800000U) return {__builtin_nanf(""), 0.0F, 0U};
  const float scale = float_of(largest_bits) * (1.0F / 127);
  const float least = __FLT_MIN__;
  const float used = scale < least ? least : scale;
  return {used, 1.0F / used, 0xFFU};
}

/// v = x + error of a block onto the stack; returns the bits of max|v| as float. Bits of absolute
/// values are ordered as the values are, with infinity and NaN above all others.
template <class T, bool HasError>
[[gnu::always_inline]] inline unsigned load_block(const T* x, const T* error, T* v,
                                                  std::size_t count) {
  unsigned largest = 0;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    T value = x[i];
    if constexpr (HasError) value += error[i];
    v[i] = value;
    const unsigned bits = __builtin_bit_cast(unsigned, static_cast<float>(value)) & 0x7FFFFFFFU;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

template <class T, bool HasKept, bool HasError>
void encode_int8_block(const Encoding<T>& job, std::size_t begin, std::size_t count) {
  const T* const x = job.x + begin;
  T* const kept = job.kept + (HasKept ? begin : 0);
  T* const error = job.error + (HasError ? begin : 0);
  const T own = job.own;
  const T keep = job.keep;
  alignas(64) T v[kCodecBlock];
  const BlockScale with = block_scale(load_block<T, HasError>(x, error, v, count));
  unsigned char* const block = job.coded + begin / kCodecBlock * kCodecBlockBytes;
  unsigned char* const codes = block + sizeof with.scale;
  __builtin_memcpy(block, &with.scale, sizeof with.scale);
  // Added to a small number, this rounds it to a whole one, which then is in the lowest bits.
  constexpr float kRounder = 12582912.0F;  // 1.5 · 2²³
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const float raised = static_cast<float>(v[i]) * with.inverse + kRounder;
    codes[i] = static_cast<unsigned char>(__builtin_bit_cast(unsigned, raised) & with.mask);
    const T decoded = static_cast<T>(with.scale * (raised - kRounder));
    if constexpr (HasKept) {
      const T old = x[i];
      kept[i] = fma(keep, old - decoded, own * old);
    }
    if constexpr (HasError) error[i] = v[i] - decoded;
  }
}

template <class T, bool HasKept, bool HasError>
void encode_int8(const Encoding<T>& job) {
  std::size_t begin = 0;
  for (; begin + kCodecBlock <= job.count; begin += kCodecBlock) {
    encode_int8_block<T, HasKept, HasError>(job, begin, kCodecBlock);
  }
  if (begin < job.count) encode_int8_block<T, HasKept, HasError>(job, begin, job.count - begin);
}

template <class T>
void fast_encode_bf16(const Encoding<T>& job) {
  if (job.error != nullptr) {
    return job.kept != nullptr ? encode_bf16<T, true, true>(job) : encode_bf16<T, false, true>(job);
  }
  return job.kept != nullptr ? encode_bf16<T, true, false>(job) : encode_bf16<T, false, false>(job);
}

template <class T>
void fast_encode_int8(const Encoding<T>& job) {
  if (job.error != nullptr) {
    return job.kept != nullptr ? encode_int8<T, true, true>(job) : encode_int8<T, false, true>(job);
  }
  return job.kept != nullptr ? encode_int8<T, true, false>(job) : encode_int8<T, false, false>(job);
}

template <bool Adds, class T>
[[gnu::always_inline]] inline void put(T& into, T decoded) {
  if constexpr (Adds) {
    into += decoded;
  } else {
    into = decoded;
  }
}

template <class T, bool Adds>
void fast_decode_bf16(const Decoding<T>& job) {
  const unsigned char* const coded = job.coded + 2 * job.offset;
  T* const into = job.into;
  const std::size_t count = job.count;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    unsigned short upper;
    __builtin_memcpy(&upper, coded + 2 * i, sizeof upper);
    put<Adds>(into[i], static_cast<T>(from_bf16(upper)));
  }
}

template <class T, bool Adds>
[[gnu::always_inline]] inline void decode_codes(const unsigned char* codes, float scale, T* into,
                                                std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const float decoded = scale * static_cast<float>(static_cast<signed char>(codes[i]));
    put<Adds>(into[i], static_cast<T>(decoded));
  }
}

template <class T, bool Adds>
void fast_decode_int8(const Decoding<T>& job) {
  std::size_t first = job.offset % kCodecBlock;  // only the first block may begin inside
  const unsigned char* block = job.coded + job.offset / kCodecBlock * kCodecBlockBytes;
  for (std::size_t done = 0; done < job.count; block += kCodecBlockBytes, first = 0) {
    float scale;
    __builtin_memcpy(&scale, block, sizeof scale);
    const unsigned char* const codes = block + sizeof scale + first;
    const std::size_t left = job.count - done;
    const std::size_t count = left < kCodecBlock - first ? left : kCodecBlock - first;
    if (count == kCodecBlock) {
      decode_codes<T, Adds>(codes, scale, job.into + done, kCodecBlock);
    } else {
      decode_codes<T, Adds>(codes, scale, job.into + done, count);
    }
    done += count;
  }
}

}  // namespace
}  // namespace gossamer
