#pragma once
/// Sums of squares in 32 lanes of double, in the order of Note [Lanes] (norm.h), and a test of all
/// elements; see Note [One loop, many instruction sets]. Vector types, because the compiler may not
/// reorder a sum.

#include <cstddef>

namespace gossamer {
namespace {

/// Elements that are computed on the stack at a time; whole groups of lanes.
constexpr std::size_t kTile = 256;
static_assert(kTile % 32 == 0);

using Doubles [[gnu::vector_size(64)]] = double;
using Floats [[gnu::vector_size(32)]] = float;

inline void load8(const double* a, Doubles& lanes) { __builtin_memcpy(&lanes, a, sizeof lanes); }

inline void load8(const float* a, Doubles& lanes) {
  Floats narrow;
  __builtin_memcpy(&narrow, a, sizeof narrow);
  lanes = __builtin_convertvector(narrow, Doubles);
}

template <class T>
class SquareLanes {
 public:
  /// Adds the squares of the next `count` elements; all but the last call give whole groups of 32.
  void add(const T* a, std::size_t count) {
    Doubles sums[4] = {sums_[0], sums_[1], sums_[2], sums_[3]};  // kept in registers
    std::size_t i = 0;
    for (; i + 32 <= count; i += 32) {
#pragma GCC unroll 4
      for (std::size_t s = 0; s < 4; ++s) {
        Doubles values;
        load8(a + i + 8 * s, values);
        sums[s] += values * values;
      }
    }
    for (std::size_t s = 0; s < 4; ++s) sums_[s] = sums[s];
    for (std::size_t lane = 0; i < count; ++i, ++lane) {
      const double value = a[i];
      sums_[lane / 8][lane % 8] += value * value;
    }
  }

  /// The same for a − b, in the precision of T, of at most kTile elements.
  void add_difference(const T* a, const T* b, std::size_t count) {
    alignas(64) T difference[kTile];
    for (std::size_t i = 0; i < count; ++i) difference[i] = a[i] - b[i];
    add(difference, count);
  }

  double fold() const {
    Doubles lanes = (sums_[0] + sums_[2]) + (sums_[1] + sums_[3]);
    for (int width = 4; width > 0; width /= 2) {
      for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
    }
    return lanes[0];
  }

 private:
  Doubles sums_[4] = {};  // lanes 0 to 7, 8 to 15, …
};

/// How many elements are tested without a branch.
constexpr std::size_t kTestedAtOnce = 4096;

inline unsigned bits_of(float value) { return __builtin_bit_cast(unsigned, value); }
inline unsigned long bits_of(double value) { return __builtin_bit_cast(unsigned long, value); }

/// Whether no exponent has all bits set.
template <class T>
bool are_finite(const T* a, std::size_t count) {
  const auto infinite = bits_of(static_cast<T>(__builtin_huge_val()));  // the exponent's bits
  auto found = bits_of(T{0});
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = bits_of(a[i]);
    found |= static_cast<decltype(found)>((bits & infinite) == infinite);
  }
  return found == 0;
}

}  // namespace
}  // namespace gossamer
