#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "gossamer/base/codec.h"
#include "gossamer/kernels/ref.h"

namespace gossamer::ref {
namespace {

std::uint16_t to_bf16(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  auto upper = static_cast<std::uint16_t>(bits >> 16);
  if (std::isnan(v)) return upper | 0x40;  // quiet, so that it has a bit left in the upper half
  const std::uint32_t rest = bits & 0xFFFF;
  const bool is_odd = upper % 2 == 1;
  if (rest > 0x8000 || (rest == 0x8000 && is_odd)) ++upper;  // carries into the exponent
  return upper;
}

float decoded_bf16(const unsigned char* coded, std::size_t i) {
  std::uint16_t upper = 0;
  std::memcpy(&upper, coded + 2 * i, sizeof upper);
  return std::bit_cast<float>(static_cast<std::uint32_t>(upper) << 16);
}

template <class T>
T value_at(const Encoding<T>& job, std::size_t i) {
  return job.error == nullptr ? job.x[i] : job.x[i] + job.error[i];
}

/// Writes error and kept of element i, which decodes to `decoded`. x and error may change.
template <class T>
void keep_residual(const Encoding<T>& job, std::size_t i, T decoded) {
  const T x = job.x[i];
  if (job.error != nullptr) job.error[i] = value_at(job, i) - decoded;
  if (job.kept != nullptr) job.kept[i] = std::fma(job.keep, x - decoded, job.own * x);
}

/// The byte where the block of int8 begins in which element i is.
std::size_t block_begin(std::size_t i) { return i / kCodecBlock * kCodecBlockBytes; }

float decoded_int8(const unsigned char* coded, std::size_t i) {
  float scale = 0;
  std::memcpy(&scale, coded + block_begin(i), sizeof scale);
  const auto code =
      static_cast<signed char>(coded[block_begin(i) + sizeof scale + i % kCodecBlock]);
  return scale * static_cast<float>(code);
}

template <class T>
float scale_of(const Encoding<T>& job, Range block) {
  float largest = 0;
  for (std::size_t i = block.begin; i < block.end; ++i) {
    const auto v = static_cast<float>(value_at(job, i));
    if (!std::isfinite(v)) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::abs(v));
  }
  return std::max(largest * (1.0F / 127), std::numeric_limits<float>::min());
}

}  // namespace

template <class T>
void encode_bf16(const Encoding<T>& job) {
  for (std::size_t i = 0; i < job.count; ++i) {
    const std::uint16_t upper = to_bf16(static_cast<float>(value_at(job, i)));
    std::memcpy(job.coded + 2 * i, &upper, sizeof upper);
    keep_residual(job, i, static_cast<T>(decoded_bf16(job.coded, i)));
  }
}

template <class T>
void encode_int8(const Encoding<T>& job) {
  for (std::size_t begin = 0; begin < job.count; begin += kCodecBlock) {
    const Range block{begin, std::min(begin + kCodecBlock, job.count)};
    const float scale = scale_of(job, block);
    const float inverse = 1.0F / scale;
    unsigned char* const coded = job.coded + block_begin(begin);
    std::memcpy(coded, &scale, sizeof scale);
    for (std::size_t i = block.begin; i < block.end; ++i) {
      const float steps = std::nearbyint(static_cast<float>(value_at(job, i)) * inverse);
      const int code = std::isfinite(scale) ? static_cast<int>(steps) : 0;
      coded[sizeof scale + i - begin] = static_cast<unsigned char>(code);
      keep_residual(job, i, static_cast<T>(decoded_int8(job.coded, i)));
    }
  }
}

template <class T>
void decode_bf16(const Decoding<T>& job) {
  for (std::size_t i = 0; i < job.count; ++i) {
    job.into[i] = static_cast<T>(decoded_bf16(job.coded, job.offset + i));
  }
}

template <class T>
void decode_int8(const Decoding<T>& job) {
  for (std::size_t i = 0; i < job.count; ++i) {
    job.into[i] = static_cast<T>(decoded_int8(job.coded, job.offset + i));
  }
}

template <class T>
void decode_add_bf16(const Decoding<T>& job) {
  for (std::size_t i = 0; i < job.count; ++i) {
    job.into[i] += static_cast<T>(decoded_bf16(job.coded, job.offset + i));
  }
}

template <class T>
void decode_add_int8(const Decoding<T>& job) {
  for (std::size_t i = 0; i < job.count; ++i) {
    job.into[i] += static_cast<T>(decoded_int8(job.coded, job.offset + i));
  }
}

template void encode_bf16(const Encoding<float>&);
template void encode_bf16(const Encoding<double>&);
template void encode_int8(const Encoding<float>&);
template void encode_int8(const Encoding<double>&);
template void decode_bf16(const Decoding<float>&);
template void decode_bf16(const Decoding<double>&);
template void decode_int8(const Decoding<float>&);
template void decode_int8(const Decoding<double>&);
template void decode_add_bf16(const Decoding<float>&);
template void decode_add_bf16(const Decoding<double>&);
template void decode_add_int8(const Decoding<float>&);
template void decode_add_int8(const Decoding<double>&);

}  // namespace gossamer::ref
