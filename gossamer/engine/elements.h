#pragma once
/// What the engine does to elements: copy, sum, encode, decode and norms. Their type is known at
/// run time only, and nothing else in the engine, but for the pass of a Lane, touches them.

#include <cstddef>
#include <cstdint>
#include <span>

#include "gossamer/base/codec.h"
#include "gossamer/base/dtype.h"
#include "gossamer/kernels/digest.h"

namespace gossamer {

class WorkerPool;

namespace elements {

/// What `count` elements take.
inline std::size_t bytes_of(DType dtype, std::int64_t count) {
  return static_cast<std::size_t>(count) * size_of(dtype);
}

/// Where element `index` is of those that begin at `begin`.
inline std::byte* address(DType dtype, void* begin, std::int64_t index) {
  return static_cast<std::byte*>(begin) + bytes_of(dtype, index);
}
inline const std::byte* address(DType dtype, const void* begin, std::int64_t index) {
  return static_cast<const std::byte*>(begin) + bytes_of(dtype, index);
}

/// The two may overlap.
void copy_bytes(void* into, const void* from, std::size_t bytes);
void copy(DType dtype, void* into, const void* from, std::int64_t count);
/// Past the caches; the two are apart. For payloads, which their receiver reads a step later.
void copy_streaming(DType dtype, void* into, const void* from, std::int64_t count);
/// Likewise, with the digests of the tiles; see digest.h.
void copy_digested(DType dtype, void* into, const void* from, std::int64_t count,
                   std::span<Digest> digests);
void clear(DType dtype, void* into, std::int64_t count);
/// x ← weight · x.
void scale(DType dtype, void* x, std::int64_t count, double weight);

struct Summand {
  const std::byte* data = nullptr;
  bool is_coded = false;
};
struct Summands {
  std::span<const Summand> terms;
  double scale = 1;
  Codec codec = Codec::fp32;
};
/// into = scale · Σ terms, added in the order given, coded ones last.
void sum(DType dtype, void* into, std::int64_t count, const Summands& summands);

/// EncodeArgs for elements of any type.
struct Encoding {
  Codec codec = Codec::fp32;
  const void* x = nullptr;
  std::int64_t count = 0;
  std::byte* coded = nullptr;  ///< coded_bytes(codec, count, dtype)
  void* kept = nullptr;
  double own = 1;
  double keep = 0;
  void* error = nullptr;
};
void encode(DType dtype, const Encoding& encoding);
/// into = elements [offset, offset + count) of a coded vector.
struct Decoding {
  Codec codec = Codec::fp32;
  std::span<const std::byte> coded;
  std::int64_t offset = 0;
};
void decode(DType dtype, void* into, std::int64_t count, const Decoding& decoding);

/// Σ x².
double norm_squared(DType dtype, const void* x, std::int64_t count, WorkerPool* pool = nullptr);
/// Σ (a − b)².
double distance_squared(DType dtype, const void* a, const void* b, std::int64_t count);
/// Whether all decode to finite numbers; with Codec::fp32 they are not coded.
bool are_finite(DType dtype, Codec codec, std::span<const std::byte> bytes);
/// Index of the first that is not finite; −1: all are.
std::int64_t first_non_finite(DType dtype, const void* x, std::int64_t count);
double value_of(DType dtype, const void* element);

}  // namespace elements
}  // namespace gossamer
