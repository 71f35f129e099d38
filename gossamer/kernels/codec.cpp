#include "gossamer/kernels/codec.h"

#include <cmath>
#include <cstring>
#include <string>

#include "gossamer/base/errors.h"
#include "gossamer/kernels/kernel_table.h"

namespace gossamer {
namespace {

template <class T>
void encode_uncoded(const Encoding<T>& job) {
  if (job.count == 0) return;
  if (job.error == nullptr) {
    std::memcpy(job.coded, job.x, job.count * sizeof(T));
    for (std::size_t i = 0; job.kept != nullptr && i < job.count; ++i) {
      job.kept[i] = job.own * job.x[i];
    }
    return;
  }
  for (std::size_t i = 0; i < job.count; ++i) {
    const T x = job.x[i];
    const T v = x + job.error[i];
    std::memcpy(job.coded + i * sizeof(T), &v, sizeof(T));
    job.error[i] = v - v;  // zero, unless v is not finite
    if (job.kept != nullptr) job.kept[i] = job.own * x + job.keep * (x - v);
  }
}

template <class T>
void decode_uncoded(const Decoding<T>& job) {
  if (job.count == 0) return;
  std::memcpy(job.into, job.coded + job.offset * sizeof(T), job.count * sizeof(T));
}

template <class T>
void decode_add_uncoded(const Decoding<T>& job) {
  for (std::size_t i = 0; i < job.count; ++i) {
    T element;
    std::memcpy(&element, job.coded + (job.offset + i) * sizeof(T), sizeof(T));
    job.into[i] += element;
  }
}

template <class T>
CodecKernels<T> kernels_of(Codec codec) {
  if (codec == Codec::fp32) return {encode_uncoded<T>, decode_uncoded<T>, decode_add_uncoded<T>};
  return active_kernels<T>().codecs[static_cast<std::size_t>(codec)];
}

/// Of codes of 16 bits, with the bits of their exponent.
bool are_finite_codes(std::span<const std::byte> coded, unsigned exponent) {
  unsigned any = 0;  // without a branch, for speed
  for (std::size_t at = 0; at + sizeof(std::uint16_t) <= coded.size(); at += 2) {
    std::uint16_t code = 0;
    std::memcpy(&code, coded.data() + at, sizeof(code));
    any |= static_cast<unsigned>((code & exponent) == exponent);
  }
  return any == 0;
}

/// Of blocks with a scale.
bool are_finite_scales(std::span<const std::byte> coded) {
  bool is_finite = true;
  for (std::size_t at = 0; at + sizeof(float) <= coded.size(); at += kCodecBlockBytes) {
    float scale = 0;
    std::memcpy(&scale, coded.data() + at, sizeof(scale));
    is_finite = is_finite && std::isfinite(scale);
  }
  return is_finite;
}

void require_size(bool good, std::string_view place, std::string_view what, std::size_t got,
                  std::string remedy) {
  if (good) return;
  fail_argument({.place = place,
                 .what = what,
                 .got = std::to_string(got) + " bytes",
                 .remedy = std::move(remedy)});
}

/// Throws unless `coded` reaches as far as the last element.
template <class T>
Decoding<T> decoding(std::string_view place, Codec codec, std::span<const std::byte> coded,
                     std::int64_t offset, std::span<T> into) {
  if (offset < 0) {
    fail_argument({.place = place,
                   .what = "offset must be 0 or more",
                   .got = std::to_string(offset),
                   .remedy = "count elements from the start of the coded vector"});
  }
  const std::int64_t end = offset + static_cast<std::int64_t>(into.size());
  const std::size_t needed = coded_bytes(codec, end, dtype_of<T>());
  require_size(coded.size() >= needed, place, "the coded vector ends before the last element",
               coded.size(), "pass the " + std::to_string(needed) + " bytes up to it");
  return {.coded = reinterpret_cast<const unsigned char*>(coded.data()),
          .offset = static_cast<std::size_t>(offset),
          .into = into.data(),
          .count = into.size()};
}

}  // namespace

template <class T>
void encode(Codec codec, const EncodeArgs<T>& args) {
  const std::size_t bytes =
      coded_bytes(codec, static_cast<std::int64_t>(args.x.size()), dtype_of<T>());
  require_size(args.coded.size() == bytes, "encode", "coded must have the size of the coded x",
               args.coded.size(), "pass coded_bytes(codec, x.size()), " + std::to_string(bytes));
  const Encoding<T> job{.x = args.x.data(),
                        .count = args.x.size(),
                        .coded = reinterpret_cast<unsigned char*>(args.coded.data()),
                        .kept = args.kept,
                        .own = static_cast<T>(args.own),
                        .keep = static_cast<T>(args.keep),
                        .error = args.error};
  kernels_of<T>(codec).encode(job);
}

template <class T>
void decode(Codec codec, std::span<const std::byte> coded, std::int64_t offset, std::span<T> into) {
  const Decoding<T> job = decoding("decode", codec, coded, offset, into);
  kernels_of<T>(codec).decode(job);
}

template <class T>
void decode_add(Codec codec, std::span<const std::byte> coded, std::int64_t offset,
                std::span<T> into) {
  const Decoding<T> job = decoding("decode_add", codec, coded, offset, into);
  kernels_of<T>(codec).decode_add(job);
}

bool decodes_to_finite(Codec codec, std::span<const std::byte> coded) {
  GOSSAMER_ASSERT(codec != Codec::fp32);
  switch (codec) {
    case Codec::fp32:
      break;
    case Codec::bf16:
      return are_finite_codes(coded, 0x7f80U);
    case Codec::int8:
      return are_finite_scales(coded);
  }
  return false;
}

template void encode(Codec, const EncodeArgs<float>&);
template void encode(Codec, const EncodeArgs<double>&);
template void decode(Codec, std::span<const std::byte>, std::int64_t, std::span<float>);
template void decode(Codec, std::span<const std::byte>, std::int64_t, std::span<double>);
template void decode_add(Codec, std::span<const std::byte>, std::int64_t, std::span<float>);
template void decode_add(Codec, std::span<const std::byte>, std::int64_t, std::span<double>);

}  // namespace gossamer
