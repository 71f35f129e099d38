#include "gossamer/model/dadam_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

void check(const DAdamSetting& s) {
  for (const double number : {s.step_size, s.epsilon, s.steps, s.parameters, s.gradient_bound,
                              s.smoothness, s.excess_loss}) {
    check_argument("DAdam bound", std::isfinite(number), "all numbers must be finite",
                   std::to_string(number));
  }
  check_argument("DAdam bound", s.beta1 > 0 && s.beta1 < s.beta2,
                 "beta1 must lie between 0 and beta2", std::to_string(s.beta1));
  check_argument("DAdam bound", s.beta2 < 1, "beta2 must be below 1", std::to_string(s.beta2));
  check_argument("DAdam bound", s.step_size > 0, "the step size must be positive",
                 std::to_string(s.step_size));
  check_argument("DAdam bound", s.epsilon > 0, "epsilon must be positive",
                 std::to_string(s.epsilon));
  check_argument("DAdam bound", s.steps > s.beta1 / (1 - s.beta1),
                 "there must be more than beta1/(1 - beta1) steps", std::to_string(s.steps));
  check_argument("DAdam bound", s.parameters >= 1, "there must be at least 1 parameter",
                 std::to_string(s.parameters));
  check_argument("DAdam bound", s.gradient_bound > 0, "the bound on gradients must be positive",
                 std::to_string(s.gradient_bound));
  check_argument("DAdam bound", s.smoothness >= 0, "the smoothness must not be negative",
                 std::to_string(s.smoothness));
  check_argument("DAdam bound", s.excess_loss >= 0, "the excess loss must not be negative",
                 std::to_string(s.excess_loss));
  check_argument("DAdam bound", s.lambda >= 0 && s.lambda <= 1, "lambda must lie between 0 and 1",
                 std::to_string(s.lambda));
}

// r = 1 - beta1/beta2.
constexpr DAdamTerm kTerms[] = {
    {"optimization", "4 R (F(x0) - F*)/(alpha T~)", &DAdamBound::optimization, false},
    {"noise", "24 D R^2 sqrt(1-beta1)/(sqrt(1-beta2) r^(3/2))", &DAdamBound::noise},
    {"curvature", "2 alpha D L R (1-beta1)/((1-beta2) r)", &DAdamBound::curvature},
    {"momentum", "4 alpha^2 L^2 D beta1/(r (1-beta2)^(3/2))", &DAdamBound::momentum},
    {"disagreement",
     "8 alpha^2 (1+lambda^2) R L^2 D sqrt(1-beta1)/((1-lambda^2)^2 (1-beta2) r sqrt(eps))",
     &DAdamBound::disagreement},
};

}  // namespace

DAdamBound dadam_bound(const DAdamSetting& setting) {
  check(setting);
  const double alpha = setting.step_size;
  const double R = setting.gradient_bound;
  const double L = setting.smoothness;
  const double D = setting.parameters;
  const double one_less_beta1 = 1 - setting.beta1;
  const double one_less_beta2 = 1 - setting.beta2;
  const double one_less_ratio = 1 - setting.beta1 / setting.beta2;
  const double lambda2 = setting.lambda * setting.lambda;
  const double effective_steps = setting.steps - setting.beta1 / one_less_beta1;
  DAdamBound bound;
  bound.optimization = 4 * R / (alpha * effective_steps) * setting.excess_loss;
  bound.noise = 24 * D * R * R * std::sqrt(one_less_beta1) /
                (std::sqrt(one_less_beta2) * std::pow(one_less_ratio, 1.5));
  bound.curvature = 2 * alpha * D * L * R * one_less_beta1 / (one_less_beta2 * one_less_ratio);
  bound.momentum = 4 * alpha * alpha * L * L * D * setting.beta1 /
                   (one_less_ratio * std::pow(one_less_beta2, 1.5));
  bound.disagreement =
      8 * alpha * alpha * (1 + lambda2) * R * L * L * D * std::sqrt(one_less_beta1) /
      (std::pow(1 - lambda2, 2) * one_less_beta2 * one_less_ratio * std::sqrt(setting.epsilon));
  if (setting.lambda == 1) bound.disagreement = std::numeric_limits<double>::infinity();  // L = 0
  bound.per_step = std::log1p(R / (setting.epsilon * one_less_beta2)) / effective_steps -
                   setting.steps / effective_steps * std::log(setting.beta2);
  return bound;
}

std::span<const DAdamTerm> dadam_terms() { return kTerms; }

double known_at_start(const DAdamSetting& setting) {
  return std::min(setting.parameters * setting.gradient_bound * setting.gradient_bound,
                  2 * setting.smoothness * setting.excess_loss);
}

BoundVerdict verdict_on(const DAdamBound& bound, const DAdamSetting& setting) {
  const double total = bound.total();
  if (std::isinf(total)) return BoundVerdict::infinite;
  return total < known_at_start(setting) ? BoundVerdict::informative : BoundVerdict::vacuous;
}

std::string_view name_of(BoundVerdict verdict) {
  switch (verdict) {
    case BoundVerdict::informative:
      return "informative";
    case BoundVerdict::vacuous:
      return "vacuous";
    case BoundVerdict::infinite:
      return "infinite";
  }
  __builtin_unreachable();
}

}  // namespace gossamer
