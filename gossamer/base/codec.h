#pragma once
/// The forms in which a payload crosses hosts, and how many bytes each takes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
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

struct CodecFacts {
  std::string_view name;          ///< the word users type
  std::size_t element_bytes = 0;  ///< 0: as many as the elements' own type has
  std::size_t block = 0;          ///< elements that share a scale of 4 bytes; 0: there is none
  /// Whether what coding leaves out is kept and coded with the next payload: bf16 is off by less
  /// than a step of training, int8 is not.
  bool carries_error = false;
};

/// In the order of the enumeration. What codes and decodes is in KernelTable::codecs, by this
/// order.
inline constexpr CodecFacts kCodecs[] = {
    {.name = "fp32"},
    {.name = "bf16", .element_bytes = 2},
    {.name = "int8", .element_bytes = 1, .block = kCodecBlock, .carries_error = true},
};

/// Those of the table.
inline constexpr auto kAllCodecs = [] {
  std::array<Codec, std::size(kCodecs)> all{};
  for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<Codec>(k);
  return all;
}();

/// Those that round: all but fp32.
inline constexpr std::span<const Codec> kLossyCodecs = std::span(kAllCodecs).subspan(1);

constexpr const CodecFacts& facts_of(Codec codec) {
  return kCodecs[static_cast<std::size_t>(codec)];
}

constexpr std::string_view name_of(Codec codec) { return facts_of(codec).name; }

/// The codec of that name. Throws std::invalid_argument that lists the names for any other word.
Codec find_codec(std::string_view name);

/// Bytes of `count` ≥ 0 coded elements; `dtype` matters to fp32 only. The first k elements of a
/// longer vector lie in its first coded_bytes(codec, k) bytes.
constexpr std::size_t coded_bytes(Codec codec, std::int64_t count, DType dtype = DType::f32) {
  const CodecFacts& facts = facts_of(codec);
  const auto elements = static_cast<std::size_t>(count);
  const std::size_t each = facts.element_bytes == 0 ? size_of(dtype) : facts.element_bytes;
  const std::size_t blocks = facts.block == 0 ? 0 : (elements + facts.block - 1) / facts.block;
  return elements * each + blocks * sizeof(float);
}

}  // namespace gossamer
