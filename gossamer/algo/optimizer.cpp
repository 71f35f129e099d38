#include "gossamer/algo/optimizer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "gossamer/algo/choices.h"
#include "gossamer/algo/optimizers/optimizers.h"
#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

constexpr std::string_view kStandIn = "none";
constexpr std::string_view kMomentumState[] = {"momentum_buffer"};
constexpr std::string_view kAdamState[] = {"exp_avg", "exp_avg_sq"};
constexpr std::string_view kAccumAdamState[] = {"exp_avg", "exp_avg_sq", "accumulated"};

constexpr Optimizer kOptimizers[] = {
    {kStandIn, "no step of its own: only mixes", {}, none_pass<float>, none_pass<double>},
    {"sgd", "stochastic gradient descent", {}, sgd_pass<float>, sgd_pass<double>},
    {"momentum", "SGD with heavy-ball or Nesterov momentum", kMomentumState, momentum_pass<float>,
     momentum_pass<double>},
    {"adam", "Adam; weight decay is added to the gradient", kAdamState, adam_pass<float>,
     adam_pass<double>},
    {"adamw", "Adam with decoupled weight decay", kAdamState, adamw_pass<float>,
     adamw_pass<double>},
    {"accum_adam", "Adam whose momenta move every s-th iteration by the mean gradient",
     kAccumAdamState, accum_adam_pass<float>, accum_adam_pass<double>},
    {"accum_adamw", "AccumAdam with decoupled weight decay", kAccumAdamState,
     accum_adamw_pass<float>, accum_adamw_pass<double>},
};

/// A number that patterns have beside the optimizer's.
struct Option {
  std::string_view name;  ///< that of the member
  std::variant<double Hyper::*, int Hyper::*> member;
  bool (*is_valid)(double value);
  std::string_view range;
};

constexpr Option kOptions[] = {
    {"consensus", &Hyper::consensus, [](double v) { return v > 0 && v <= 1; }, "in (0, 1]"},
    {"outer_every", &Hyper::outer_every, [](double v) { return v >= 0; }, "not negative"},
    {"outer_momentum", &Hyper::outer_momentum, [](double v) { return v >= 0 && v < 1; },
     "in [0, 1)"},
    {"noise_share", &Hyper::noise_share, [](double v) { return v > 0 && v <= 1; },
     "above 0 and at most 1"},
    {"outer_lr", &Hyper::outer_lr, [](double v) { return std::isfinite(v) && v > 0; },
     "finite and positive"},
};

void check(bool valid, std::string_view key, std::string_view range, double got) {
  if (valid) return;
  fail_argument({.place = "optimizer",
                 .what = std::string(key) + " must be " + std::string(range),
                 .got = std::to_string(got)});
}

}  // namespace

std::span<const Optimizer> optimizers() { return kOptimizers; }

const Optimizer& find_optimizer(std::string_view name) {
  const auto found = std::ranges::find(kOptimizers, name, &Optimizer::name);
  if (found != std::end(kOptimizers)) return *found;
  fail_unknown_name("optimizer", "optimizer", name, optimizer_choices());
}

std::vector<std::string_view> optimizer_choices() {
  std::vector<std::string_view> names;
  for (const Optimizer& optimizer : kOptimizers) {
    if (optimizer.name != kStandIn) names.push_back(optimizer.name);
  }
  return names;
}

void check_optimizer_choice(std::string_view name) {
  if (find_optimizer(name).name != kStandIn) return;
  std::string names;
  for (std::string_view each : optimizer_choices()) {
    names += (names.empty() ? "" : ", ") + std::string(each);
  }
  fail_argument({.place = "optimizer",
                 .what = "this optimizer makes no step, so nothing would be trained",
                 .got = "'none'",
                 .remedy = "choose one of: " + names});
}

void set_option(Hyper& hyper, std::string_view name, double value) {
  const auto found = std::ranges::find(kOptions, name, &Option::name);
  GOSSAMER_ASSERT(found != std::end(kOptions));
  const auto set = [&](auto member) {
    hyper.*member = static_cast<std::remove_cvref_t<decltype(hyper.*member)>>(value);
  };
  std::visit(set, found->member);
}

void check_hyper(const Hyper& h) {
  check(std::isfinite(h.lr) && h.lr >= 0, "lr", "finite and not negative", h.lr);
  check(std::isfinite(h.weight_decay) && h.weight_decay >= 0, "weight_decay",
        "finite and not negative", h.weight_decay);
  check(h.beta1 >= 0 && h.beta1 < 1, "beta1", "in [0, 1)", h.beta1);
  check(h.beta2 >= 0 && h.beta2 < 1, "beta2", "in [0, 1)", h.beta2);
  check(std::isfinite(h.eps) && h.eps > 0, "eps", "positive", h.eps);
  check(h.momentum >= 0 && h.momentum < 1, "momentum", "in [0, 1)", h.momentum);
  check(h.dampening >= 0 && h.dampening <= 1, "dampening", "in [0, 1]", h.dampening);
  check(!h.nesterov || h.dampening == 0, "dampening", "0 with nesterov", h.dampening);
  check(h.accumulate >= 1, "accumulate", "at least 1", h.accumulate);
  for (const Option& option : kOptions) {
    const double value =
        std::visit([&](auto member) { return static_cast<double>(h.*member); }, option.member);
    check(option.is_valid(value), option.name, option.range, value);
  }
}

}  // namespace gossamer
