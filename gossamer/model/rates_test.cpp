#include "gossamer/model/rates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

namespace gossamer {
namespace {

/// Of the non-convex rates by default.
const RateValue& rate_of(const std::vector<RateValue>& values, RateMethod method,
                         Curvature curvature = Curvature::non_convex) {
  for (const RateValue& value : values) {
    if (value.rate.method == method && value.rate.curvature == curvature) return value;
  }
  throw std::logic_error("no such rate");
}

TEST(Rates, OfTheLectureWorkedByHand) {
  // Cubes and squares: T^(2/3) = 10000, rho = 7/8, sigma = 8, b = 27, n = 16, H = 8.
  const RateSetting setting{.mixing = {.workers = 16, .rho = 0.875, .global_average_every = 8},
                            .steps = 1e6,
                            .sigma = 8,
                            .b = 27};
  const std::vector<RateValue> rates = evaluate_rates(setting);
  ASSERT_EQ(rates.size(), 10U);
  const double rho_part = std::pow(0.875, 2.0 / 3);
  const double sampling = 8 / (4 * 1e3);
  const double disagreement = rho_part * 4 / (1e4 * 0.5);
  const double heterogeneity = rho_part * 9 / (1e4 * 0.25);
  for (Curvature curvature : {Curvature::generally_convex, Curvature::non_convex}) {
    const RateValue& d_sgd = rate_of(rates, RateMethod::d_sgd, curvature);
    ASSERT_EQ(d_sgd.terms.size(), 3U);
    EXPECT_NEAR(d_sgd.terms[0].value, sampling, 1e-15);
    EXPECT_NEAR(d_sgd.terms[1].value, disagreement, 1e-15);
    EXPECT_NEAR(d_sgd.terms[2].value, heterogeneity, 1e-15);
    EXPECT_NEAR(d_sgd.sum, sampling + disagreement + heterogeneity, 1e-15);
    EXPECT_NEAR(rate_of(rates, RateMethod::p_sgd, curvature).sum, sampling, 1e-15);
  }
  const RateValue& corrected =
      rate_of(rates, RateMethod::exact_diffusion, Curvature::generally_convex);
  EXPECT_NEAR(corrected.sum, sampling + disagreement, 1e-15);
  const RateValue& one_peer = rate_of(rates, RateMethod::one_peer_exponential);
  EXPECT_NEAR(one_peer.sum, sampling + 4 * std::pow(4, 2.0 / 3) / 1e4, 1e-15);
  const RateValue& averaged = rate_of(rates, RateMethod::global_average);
  EXPECT_NEAR(averaged.terms[1].value, rho_part * 4 * 2 / 1e4, 1e-15);
  EXPECT_NEAR(averaged.terms[2].value, rho_part * 9 * 4 / 1e4, 1e-15);
}

TEST(Rates, OfStronglyConvexLosses) {
  const std::vector<RateValue> rates =
      evaluate_rates({.mixing = {.workers = 5, .rho = 0.5}, .steps = 10, .sigma = 3, .b = 2});
  const RateValue& d_sgd = rate_of(rates, RateMethod::d_sgd, Curvature::strongly_convex);
  EXPECT_DOUBLE_EQ(d_sgd.terms[0].value, 9.0 / 50);
  EXPECT_DOUBLE_EQ(d_sgd.terms[1].value, 0.25 * 9 / (0.5 * 100));
  EXPECT_DOUBLE_EQ(d_sgd.terms[2].value, 0.25 * 4 / (0.25 * 100));
  const RateValue& corrected =
      rate_of(rates, RateMethod::exact_diffusion, Curvature::strongly_convex);
  EXPECT_DOUBLE_EQ(corrected.sum, d_sgd.terms[0].value + d_sgd.terms[1].value);
  EXPECT_DOUBLE_EQ(rate_of(rates, RateMethod::p_sgd, Curvature::strongly_convex).sum, 9.0 / 50);
}

/// The lecture derives its transient iterations from the rates in this way.
TEST(Rates, AreEvenWithParallelSgdAfterTheTransientIterations) {
  const MixingStrength mixing{.workers = 12, .rho = 0.75, .global_average_every = 6};
  const std::vector<RateValue> rates = evaluate_rates({.mixing = mixing, .steps = 1});
  int compared = 0;
  for (const RateValue& rate : rates) {
    for (const TransientRow& row : transient_rows()) {
      if (name_of(row.method) != name_of(rate.rate.method)) continue;
      if (row.curvature != rate.rate.curvature) continue;
      const bool is_iid = row.data == DataSplit::iid || rate.terms.size() == 2;
      const double even = rate.terms[is_iid ? 1 : 2].even_from;
      EXPECT_NEAR(even / transient_iterations(row, mixing), 1, 1e-9)
          << name_of(row.method) << " " << name_of(row.curvature);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 12);
}

TEST(Rates, AreEvenLaterWithLessNoise) {
  const MixingStrength mixing{.workers = 8, .rho = 0.5};
  const auto even_from = [&](double sigma, double b, std::size_t term) {
    const std::vector<RateValue> rates =
        evaluate_rates({.mixing = mixing, .steps = 1, .sigma = sigma, .b = b});
    return rate_of(rates, RateMethod::d_sgd).terms[term].even_from;
  };
  // n^3 rho^4/(sigma^2 (1 - rho)^2) and n^3 rho^4 b^4/(sigma^6 (1 - rho)^4).
  EXPECT_NEAR(even_from(0.5, 1, 1), 512 * 0.0625 * 4 * 4, 1e-6);
  EXPECT_NEAR(even_from(0.5, 3, 2), 512 * 0.0625 * 16 * 81 * 64, 1e-2);
  EXPECT_EQ(even_from(1, 0, 2), 0);
  EXPECT_TRUE(std::isinf(even_from(0, 1, 2)));
  EXPECT_EQ(even_from(0, 0, 2), 0);
}

TEST(Rates, OfOnePeerGraphsAreForPowersOfTwoAndOfLogPowerFour) {
  const auto one_peer = [](int workers) {
    const std::vector<RateValue> rates =
        evaluate_rates({.mixing = {.workers = workers, .rho = 0.5}, .steps = 100});
    return rate_of(rates, RateMethod::one_peer_exponential);
  };
  EXPECT_NEAR(one_peer(16).terms[1].even_from, 4096.0 * 256, 1e-3);
  EXPECT_TRUE(std::isnan(one_peer(12).sum));
  EXPECT_EQ(one_peer(1).terms[1].value, 0);
}

TEST(Rates, AreInfiniteWhereNothingMixesAndParallelWhereAllDo) {
  const std::vector<RateValue> stuck =
      evaluate_rates({.mixing = {.workers = 4, .rho = 1}, .steps = 100});
  EXPECT_TRUE(std::isinf(rate_of(stuck, RateMethod::d_sgd).sum));
  EXPECT_TRUE(std::isinf(rate_of(stuck, RateMethod::d_sgd).terms[1].even_from));
  EXPECT_TRUE(std::isfinite(rate_of(stuck, RateMethod::global_average).sum));
  const std::vector<RateValue> complete =
      evaluate_rates({.mixing = {.workers = 4, .rho = 0}, .steps = 100});
  EXPECT_EQ(rate_of(complete, RateMethod::d_sgd).sum, rate_of(complete, RateMethod::p_sgd).sum);
}

TEST(Rates, RefuseNonsense) {
  const MixingStrength mixing{.workers = 4, .rho = 0.5};
  EXPECT_THROW(evaluate_rates({.mixing = mixing, .steps = 0}), std::invalid_argument);
  EXPECT_THROW(evaluate_rates({.mixing = mixing, .sigma = -1}), std::invalid_argument);
  EXPECT_THROW(evaluate_rates({.mixing = mixing, .b = std::nan("")}), std::invalid_argument);
  EXPECT_THROW(evaluate_rates({.mixing = {.workers = 4, .rho = 2}}), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
