#include "gossamer/lab/problems/row_loops.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "gossamer/base/rng.h"

namespace gossamer {
namespace {

constexpr std::size_t kRows = 3;
constexpr double kSentinel = 12345;

/// Rows and vectors of d numbers, with one number more that must not be touched.
struct Case {
  std::vector<float> rows;
  std::vector<double> vectors;
  std::array<const float*, kRows> row{};
  std::array<const double*, kRows> vector{};

  explicit Case(std::size_t d) : rows(kRows * (d + 1), 1e9F), vectors(kRows * (d + 1), kSentinel) {
    Rng rng(d);
    for (std::size_t k = 0; k < kRows; ++k) {
      for (std::size_t i = 0; i < d; ++i) {
        rows[k * (d + 1) + i] = static_cast<float>(rng.normal());
        vectors[k * (d + 1) + i] = rng.normal();
      }
      row[k] = &rows[k * (d + 1)];
      vector[k] = &vectors[k * (d + 1)];
    }
  }
};

TEST(RowLoops, DotsAreSumsOfProducts) {
  for (std::size_t d = 1; d <= 70; ++d) {
    const Case made(d);
    std::array<double, kRows> sums{};
    row_loops().dots(made.row.data(), made.vector.data(), kRows, d, sums.data());
    for (std::size_t k = 0; k < kRows; ++k) {
      long double exact = 0;
      for (std::size_t i = 0; i < d; ++i) {
        exact +=
            static_cast<long double>(made.row[k][i]) * static_cast<long double>(made.vector[k][i]);
      }
      EXPECT_NEAR(sums[k], static_cast<double>(exact), 1e-14 * static_cast<double>(d)) << d;
    }
  }
}

/// Each element is rounded twice, whatever the instruction set. The first two rows share a vector.
TEST(RowLoops, AddHasTheBitsOfTwoOperationsAndStaysInside) {
  for (std::size_t d = 1; d <= 70; ++d) {
    Case made(d);
    const std::array<double, kRows> scales{0.3, -1.7, 0.1};
    std::vector<double> expected = made.vectors;
    const std::array<std::size_t, kRows> place{0, 0, d + 1};
    std::array<double*, kRows> to{};
    for (std::size_t k = 0; k < kRows; ++k) {
      to[k] = &made.vectors[place[k]];
      for (std::size_t i = 0; i < d; ++i) {
        const volatile double product = scales[k] * static_cast<double>(made.row[k][i]);
        expected[place[k] + i] += product;
      }
    }
    row_loops().add(made.row.data(), scales.data(), kRows, d, to.data());
    EXPECT_EQ(made.vectors, expected) << d;
  }
}

TEST(RowLoops, SetHasTheBitsOfThreeOperationsAndStaysInside) {
  for (std::size_t d = 1; d <= 70; ++d) {
    Case made(d);
    const std::array<double, kRows> scales{0.3, -1.7, 0.1};
    const double share = 0.7;
    std::vector<double> found(kRows * (d + 1), kSentinel);
    std::vector<double> expected = found;
    std::array<double*, kRows> to{};
    for (std::size_t k = 0; k < kRows; ++k) {
      to[k] = &found[k * (d + 1)];
      for (std::size_t i = 0; i < d; ++i) {
        const volatile double kept = share * made.vector[k][i];
        const volatile double product = scales[k] * static_cast<double>(made.row[k][i]);
        expected[k * (d + 1) + i] = kept + product;
      }
    }
    row_loops().set(made.row.data(), scales.data(), made.vector.data(), share, kRows, d, to.data());
    EXPECT_EQ(found, expected) << d;
  }
}

}  // namespace
}  // namespace gossamer
