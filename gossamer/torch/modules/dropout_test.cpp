#include "gossamer/torch/modules/dropout.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace gossamer {
namespace {

TEST(Dropout, DropsItsShareAndKeepsTheMean) {
  for (const double rate : {0.1, 0.5, 0.9}) {
    const std::int64_t n = 1 << 20;
    const at::Tensor y = Dropout(rate, 7)(at::ones({n}));
    const double dropped = y.eq(0).sum().item<double>() / static_cast<double>(n);
    EXPECT_NEAR(dropped, rate, 5e-3);  // ten standard deviations
    EXPECT_NEAR(y.mean().item<double>(), 1, 2e-2);
    EXPECT_NEAR(y.max().item<double>(), 1 / (1 - rate), 1e-3);
  }
}

TEST(Dropout, MasksFollowFromTheSeedAndTheirNumberAlone) {
  for (const int n : {1, 3, 4, 5, 1000}) {  // around the words that decide
    Dropout one(0.5, 3);
    Dropout same(0.5, 3);
    at::manual_seed(static_cast<std::uint64_t>(n));  // torch's generator must not matter
    const at::Tensor first = one(at::ones({n}));
    EXPECT_TRUE(first.equal(same(at::ones({n}))));
    const at::Tensor second = one(at::ones({n}));
    EXPECT_TRUE(second.equal(same(at::ones({n}))));
    if (n == 1000) {
      EXPECT_FALSE(first.equal(second));
      EXPECT_FALSE(first.equal(Dropout(0.5, 4)(at::ones({n}))));
    }
  }
}

TEST(Dropout, IsTheSameInDoublePrecision) {
  const at::Tensor single = Dropout(0.3, 5)(at::ones({999}));
  const at::Tensor twice = Dropout(0.3, 5)(at::ones({999}, at::kDouble));
  EXPECT_TRUE(at::allclose(single.to(at::kDouble), twice, 1e-6));
}

TEST(Dropout, TheGradientPassesWhereTheValueDid) {
  const at::Tensor x = at::full({100}, 2.0f).requires_grad_(true);
  const at::Tensor y = Dropout(0.5, 1)(x);
  y.sum().backward();
  EXPECT_TRUE(x.grad().mul(2).equal(y));
}

TEST(Dropout, RateZeroLeavesTheTensorAndImpossibleRatesAreRefused) {
  const at::Tensor x = at::ones({3});
  EXPECT_TRUE(Dropout(0, 1)(x).is_same(x));
  EXPECT_THROW(Dropout(1, 1), std::invalid_argument);
  EXPECT_THROW(Dropout(-0.1, 1), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
