#include "gossamer/base/rng.h"

#include <cmath>
#include <numbers>

namespace gossamer {
std::uint64_t mix_bits(std::uint64_t a, std::uint64_t b) {
  return counted_bits(counted_bits(a, 1), b);
}

std::uint64_t Rng::next() { return counted_bits(state_ += kGolden, 0); }

double Rng::uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

std::uint64_t Rng::below(std::uint64_t bound) {
  // Lemire's multiplication with rejection: unbiased.
  const std::uint64_t threshold = -bound % bound;
  for (;;) {
    const auto product = static_cast<unsigned __int128>(next()) * bound;
    if (static_cast<std::uint64_t>(product) >= threshold) {
      return static_cast<std::uint64_t>(product >> 64);
    }
  }
}

double Rng::normal() {
  const double radius = std::sqrt(-2 * std::log1p(-uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

}  // namespace gossamer
