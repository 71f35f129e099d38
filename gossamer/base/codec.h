#pragma once
/// The forms in which a payload crosses hosts, and how many bytes each takes.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "gossamer/base/dtype.h"

namespace gossamer {

/// fp32: the elements as they are, also where they are doubles. bf16: the upper half of a float.
/// int8: blocks of kCodecBlock elements, each with a scale of its own.
enum class Codec { fp32, bf16, int8 };

/// A block of int8 is its scale, a float, followed by one signed byte per element. The last block
/// has as many codes as there are elements left. Block k begins at byte k·kCodecBlockBytes.
inline constexpr std::size_t kCodecBlock = 256;
inline constexpr std::size_t kCodecBlockBytes = sizeof(float) + kCodecBlock;

/// The word users type: "fp32", "bf16", "int8".
constexpr std::string_view name_of(Codec codec) {
  switch (codec) {
    case Codec::fp32:
      return "fp32";
    case Codec::bf16:
      return "bf16";
    case Codec::int8:
      return "int8";
  }
  __builtin_unreachable();
}

/// The codec of that name. Throws std::invalid_argument that lists the names for any other word.
Codec find_codec(std::string_view name);

/// Bytes of `count` ≥ 0 coded elements; `dtype` matters to fp32 only. The first k elements of a
/// longer vector lie in its first coded_bytes(codec, k) bytes.
constexpr std::size_t coded_bytes(Codec codec, std::int64_t count, DType dtype = DType::f32) {
  const auto elements = static_cast<std::size_t>(count);
  switch (codec) {
    case Codec::fp32:
      return elements * size_of(dtype);
    case Codec::bf16:
      return elements * 2;
    case Codec::int8:
      return elements + (elements + kCodecBlock - 1) / kCodecBlock * sizeof(float);
  }
  __builtin_unreachable();
}

}  // namespace gossamer
