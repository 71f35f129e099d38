#pragma once
/// Seeded random numbers that are the same on every platform and standard library.

#include <cstdint>

namespace gossamer {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;  ///< 2⁶⁴ over the golden ratio

/// Number `counter` of the SplitMix64 sequence that begins at `base`: the finaliser of base +
/// counter · kGolden. Inline, for those who draw one per sample.
inline std::uint64_t counted_bits(std::uint64_t base, std::uint64_t counter) {
  std::uint64_t z = base + counter * kGolden;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

/// Mixes two words into one (the finaliser of SplitMix64): equal inputs, equal output, everywhere.
std::uint64_t mix_bits(std::uint64_t a, std::uint64_t b);

/// A SplitMix64 generator; `stream` separates users of one seed (worker, epoch, purpose).
class Rng {
 public:
  explicit Rng(std::uint64_t seed, std::uint64_t stream = 0) : state_(mix_bits(seed, stream)) {}

  std::uint64_t next();
  /// Uniform in [0, 1).
  double uniform();
  /// Uniform in [0, bound); bound must be positive.
  std::uint64_t below(std::uint64_t bound);
  /// Standard normal (Box and Muller, one value per call).
  double normal();

 private:
  std::uint64_t state_;
};

}  // namespace gossamer
