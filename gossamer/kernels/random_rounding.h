#pragma once
/// Float32 to half precision at random, so that what many roundings leave is the number itself.

#include <cstddef>
#include <cstdint>
#include <span>

namespace gossamer {

/// Numbers in two bytes.
enum class HalfFormat {
  bf16,  ///< bfloat16: the upper half of a float32
  fp16,  ///< float16 of IEEE 754
};

/// Elements that share the two words of a key: counted_bits(key, index of the first).
inline constexpr std::size_t kRoundingBlock = 4096;

/// to[i] ← the code of one of the two numbers of the format around x[i], the upper one with
/// probability (x[i] − lower) / (upper − lower): the mean is x[i]. What the format can represent
/// stays as it is, so do infinities; NaN becomes a quiet one. A finite number stays finite, at most
/// the largest of the format. The mean is exact, but for subnormals of fp16: off by 2⁻³⁷ at most.
/// Equal arguments, equal codes, on all instruction sets. Reads 4 bytes per element, writes 2. x
/// and `to` are apart. Throws std::invalid_argument where their sizes differ.
void round_at_random(HalfFormat format, std::span<const float> x, std::span<std::uint16_t> to,
                     std::uint64_t key);

}  // namespace gossamer
