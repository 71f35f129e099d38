#include "gossamer/model/rates.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

// Short names, for the table alone.
namespace rate_table {

using enum Curvature;
using enum RateMethod;
using enum Symbol;

constexpr double kThird = 1. / 3;
constexpr double kTwoThirds = 2. / 3;

// Of convex and non-convex losses.
constexpr Factor kSampling[] = {{sigma, 1}, {n, -.5}, {T, -.5}};
constexpr Factor kDisagreement[] = {
    {rho, kTwoThirds}, {sigma, kTwoThirds}, {T, -kTwoThirds}, {gap, -kThird}};
constexpr Factor kHeterogeneity[] = {
    {rho, kTwoThirds}, {b, kTwoThirds}, {T, -kTwoThirds}, {gap, -kTwoThirds}};
// Of strongly convex losses.
constexpr Factor kStrongSampling[] = {{sigma, 2}, {n, -1}, {T, -1}};
constexpr Factor kStrongDisagreement[] = {{rho, 2}, {sigma, 2}, {gap, -1}, {T, -2}};
constexpr Factor kStrongHeterogeneity[] = {{rho, 2}, {b, 2}, {gap, -2}, {T, -2}};

constexpr Factor kOnePeer[] = {{sigma, kTwoThirds}, {log_n, kTwoThirds}, {T, -kTwoThirds}};
constexpr Factor kPeriodDisagreement[] = {
    {rho, kTwoThirds}, {sigma, kTwoThirds}, {H, kThird}, {T, -kTwoThirds}};
constexpr Factor kPeriodHeterogeneity[] = {
    {rho, kTwoThirds}, {b, kTwoThirds}, {H, kTwoThirds}, {T, -kTwoThirds}};

constexpr RateTerm kGeneral[] = {
    {"sampling", kSampling}, {"disagreement", kDisagreement}, {"heterogeneity", kHeterogeneity}};
constexpr RateTerm kStrong[] = {{"sampling", kStrongSampling},
                                {"disagreement", kStrongDisagreement},
                                {"heterogeneity", kStrongHeterogeneity}};
constexpr RateTerm kOnePeerTerms[] = {{"sampling", kSampling}, {"disagreement", kOnePeer}};
constexpr RateTerm kPeriodTerms[] = {{"sampling", kSampling},
                                     {"disagreement", kPeriodDisagreement},
                                     {"heterogeneity", kPeriodHeterogeneity}};

using Terms = std::span<const RateTerm>;

constexpr std::string_view kParallel = "D-SGD with rho = 0";
constexpr std::string_view kCorrected = "W symmetric and positive semi-definite";

// A correction takes the third term away.
constexpr Rate kRates[] = {
    {p_sgd, strongly_convex, Terms(kStrong).first(1), kParallel},
    {p_sgd, generally_convex, Terms(kGeneral).first(1), kParallel},
    {p_sgd, non_convex, Terms(kGeneral).first(1), {}},
    {d_sgd, strongly_convex, kStrong, {}},
    {d_sgd, generally_convex, kGeneral, {}},
    {d_sgd, non_convex, kGeneral, {}},
    {exact_diffusion, strongly_convex, Terms(kStrong).first(2), kCorrected},
    {exact_diffusion, generally_convex, Terms(kGeneral).first(2), kCorrected},
    {one_peer_exponential, non_convex, kOnePeerTerms,
     "b = 0, n a power of two; as printed: the transient order n^3 log2(n)^2 that the lecture "
     "gives "
     "it belongs to log2(n)^(1/3)",
     true},
    {global_average, non_convex, kPeriodTerms,
     "not printed: D-SGD with H in place of 1/(1 - rho), from which the printed transient orders "
     "follow"},
};

}  // namespace rate_table

void check_rate(const RateSetting& s) {
  const auto is_finite = [](double value) { return value >= 0 && std::isfinite(value); };
  check_argument("rates", s.steps >= 1 && std::isfinite(s.steps), "there must be at least 1 step",
                 std::to_string(s.steps));
  check_argument("rates", is_finite(s.sigma), "sigma must be finite and not negative",
                 std::to_string(s.sigma));
  check_argument("rates", is_finite(s.b), "b must be finite and not negative", std::to_string(s.b));
  check_mixing("rates", s.mixing);
}

/// Both are coefficient · T^power. What is 0 is even at once, also with a first term of 0.
double even_from(std::span<const Factor> term, std::span<const Factor> first, SymbolValues values) {
  const auto power_of_steps = [](std::span<const Factor> factors) {
    double power = 0;
    for (const Factor& factor : factors) power += factor.symbol == Symbol::T ? factor.power : 0;
    return power;
  };
  const double faster = power_of_steps(first) - power_of_steps(term);
  values[static_cast<std::size_t>(Symbol::T)] = 1;
  const double own = product_value(term, values);
  if (own == 0 || faster == 0) return 0;
  return std::pow(own / product_value(first, values), 1 / faster);
}

RateValue evaluate(const Rate& rate, const SymbolValues& values) {
  RateValue result{.rate = rate};
  const bool holds =
      !rate.power_of_two ||
      std::has_single_bit(static_cast<unsigned>(values[static_cast<std::size_t>(Symbol::n)]));
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const RateTerm& term : rate.terms) {
    const double value = holds ? product_value(term.factors, values) : kNone;
    const double from = holds ? even_from(term.factors, rate.terms[0].factors, values) : kNone;
    result.terms.push_back({term.name, product_text(term.factors), value, from});
    result.sum += value;
  }
  return result;
}

}  // namespace

std::string_view name_of(RateMethod method) {
  switch (method) {
    case RateMethod::p_sgd:
      return "p_sgd";
    case RateMethod::d_sgd:
      return "d_sgd";
    case RateMethod::one_peer_exponential:
      return "one_peer_exponential";
    case RateMethod::exact_diffusion:
      return "exact_diffusion";
    case RateMethod::global_average:
      return "global_average";
  }
  __builtin_unreachable();
}

std::span<const Rate> convergence_rates() { return rate_table::kRates; }

std::vector<RateValue> evaluate_rates(const RateSetting& setting) {
  check_rate(setting);
  SymbolValues values = symbol_values(setting.mixing);
  values[static_cast<std::size_t>(Symbol::sigma)] = setting.sigma;
  values[static_cast<std::size_t>(Symbol::b)] = setting.b;
  values[static_cast<std::size_t>(Symbol::T)] = setting.steps;
  std::vector<RateValue> results;
  for (const Rate& rate : rate_table::kRates) results.push_back(evaluate(rate, values));
  return results;
}

}  // namespace gossamer
