#include "gossamer/algo/optimizer.h"

#include <algorithm>
#include <cmath>
#include <string>
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
  check(h.consensus > 0 && h.consensus <= 1, "consensus", "in (0, 1]", h.consensus);
  check(h.outer_every >= 0, "outer_every", "not negative", h.outer_every);
  check(h.outer_momentum >= 0 && h.outer_momentum < 1, "outer_momentum", "in [0, 1)",
        h.outer_momentum);
  check(h.noise_share > 0 && h.noise_share <= 1, "noise_share", "above 0 and at most 1",
        h.noise_share);
  check(std::isfinite(h.outer_lr) && h.outer_lr > 0, "outer_lr", "finite and positive", h.outer_lr);
}

}  // namespace gossamer
