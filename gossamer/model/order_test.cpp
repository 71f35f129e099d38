#include "gossamer/model/order.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gossamer {
namespace {

constexpr SymbolValues kOrderValues = {2, 3, 0.5, 0.5, 4, 16, 5, 100};

TEST(ProductText, WritesFractionsRootsAndPowers) {
  using enum Symbol;
  EXPECT_EQ(product_text({}), "1");
  EXPECT_EQ(product_text(std::array{Factor{n, 1}}), "n");
  EXPECT_EQ(product_text(std::array{Factor{n, 3}, Factor{rho, 4}, Factor{gap, -2}, Factor{H, 0}}),
            "n^3 rho^4/(1 - rho)^2");
  EXPECT_EQ(product_text(std::array{Factor{sigma, 1}, Factor{n, -0.5}, Factor{T, -0.5}}),
            "sigma/sqrt(n T)");
  EXPECT_EQ(product_text(std::array{Factor{b, 2. / 3}, Factor{T, -2. / 3}, Factor{gap, -1. / 3}}),
            "b^(2/3)/(T^(2/3) (1 - rho)^(1/3))");
  EXPECT_EQ(product_text(std::array{Factor{log_n, 2}, Factor{gap, -1}}), "log2(n)^2/(1 - rho)");
  EXPECT_EQ(product_text(std::array{Factor{T, -1}}), "1/T");
  EXPECT_EQ(product_text(std::array{Factor{n, -1.5}, Factor{T, -0.5}, Factor{H, 0.5}}),
            "sqrt(H)/(sqrt(T) n^(3/2))");
}

TEST(ProductValue, IsTheProduct) {
  using enum Symbol;
  EXPECT_DOUBLE_EQ(product_value({}, kOrderValues), 1);
  EXPECT_DOUBLE_EQ(
      product_value(std::array{Factor{sigma, 1}, Factor{n, -0.5}, Factor{T, -0.5}}, kOrderValues),
      2.0 / 40);
  EXPECT_DOUBLE_EQ(
      product_value(std::array{Factor{b, 2}, Factor{log_n, 1}, Factor{gap, -2}, Factor{H, 0}},
                    kOrderValues),
      9.0 * 4 * 4);
  SymbolValues stuck = kOrderValues;
  stuck[static_cast<std::size_t>(gap)] = 0;
  EXPECT_TRUE(std::isinf(product_value(std::array{Factor{n, 1}, Factor{gap, -1}}, stuck)));
  EXPECT_EQ(product_value(std::array{Factor{n, 1}, Factor{gap, 0}}, stuck), 16);
}

}  // namespace
}  // namespace gossamer
