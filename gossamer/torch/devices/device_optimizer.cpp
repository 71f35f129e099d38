#include "gossamer/torch/devices/device_optimizer.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string_view>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"

namespace gossamer {

/// How an optimizer of the table steps here.
struct DeviceOptimizer::Row {
  std::string_view name;
  Step step = nullptr;
  bool decouples = false;
};

DeviceOptimizer::DeviceOptimizer(const Optimizer& optimizer, std::vector<NamedTensor> tensors)
    : optimizer_(optimizer), tensors_(std::move(tensors)), updates_(tensors_.size(), 0) {
  static constexpr Row kRows[] = {
      {"sgd", &DeviceOptimizer::step_sgd, false},
      {"momentum", &DeviceOptimizer::step_sgd, false},
      {"adam", &DeviceOptimizer::step_adam, false},
      {"adamw", &DeviceOptimizer::step_adam, true},
      {"accum_adam", &DeviceOptimizer::step_accum_adam, false},
      {"accum_adamw", &DeviceOptimizer::step_accum_adam, true},
  };
  for (const Row& row : kRows) {
    if (row.name != optimizer.name) continue;
    step_ = row.step;
    decouples_ = row.decouples;
  }
  if (step_ == nullptr) {
    fail_argument({.place = "optimizer",
                   .what = "parameters on a device need an optimizer that steps",
                   .got = "'" + std::string(optimizer.name) + "'"});
  }
  for (const NamedTensor& named : tensors_) {
    auto& own = states_.emplace_back();
    for (std::size_t k = 0; k < optimizer.state.size(); ++k) {
      own.push_back(at::zeros_like(named.tensor.detach()));
    }
  }
}

at::Tensor DeviceOptimizer::step(std::span<const Hyper> groups, double clip_norm) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> norms;
  std::map<std::pair<int, std::int64_t>, Together> alike;  // by group and number of the update
  std::vector<at::Tensor> gradients;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const NamedTensor& named = tensors_[i];
    const at::Tensor& gradient = named.tensor.grad();
    if (!gradient.defined()) {
      norms.push_back(at::zeros({}, named.tensor.options().requires_grad(false)));
      continue;
    }
    norms.emplace_back();
    gradients.push_back(gradient);
    Together& together = alike[{named.group, ++updates_[i]}];
    together.x.push_back(named.tensor.detach());
    together.g.push_back(gradient);
    together.states.resize(optimizer_.state.size());
    for (std::size_t k = 0; k < states_[i].size(); ++k) together.states[k].push_back(states_[i][k]);
  }
  if (!gradients.empty()) {
    const std::vector<at::Tensor> measured = at::_foreach_norm(gradients);
    for (std::size_t i = 0, next = 0; i < norms.size(); ++i) {
      if (!norms[i].defined()) norms[i] = measured[next++];
    }
  }
  const at::Tensor all_norms = at::stack(norms);
  if (clip_norm > 0 && !gradients.empty()) {
    at::_foreach_mul_(gradients, (clip_norm / all_norms.norm()).clamp_max(1));
  }
  for (const auto& [key, together] : alike) {
    const auto& [group, t] = key;
    (this->*step_)(together, groups[at(group)], t);
  }
  return all_norms;
}

void DeviceOptimizer::step_sgd(const Together& all, const Hyper& hyper, std::int64_t t) const {
  const bool has_momentum = !all.states.empty();
  at::_fused_sgd_(all.x, all.g, has_momentum ? all.states[0] : std::vector<at::Tensor>{},
                  hyper.weight_decay, has_momentum ? hyper.momentum : 0, hyper.lr,
                  has_momentum ? hyper.dampening : 0, has_momentum && hyper.nesterov,
                  /*maximize=*/false, /*is_first_step=*/t == 1);
}

void DeviceOptimizer::step_adam(const Together& all, const Hyper& hyper, std::int64_t t) const {
  const at::Tensor number =
      at::full({}, static_cast<double>(t), at::dtype(at::kFloat).device(all.x.front().device()));
  const std::vector<at::Tensor> numbers(all.x.size(), number);
  const auto fused = [&](const auto& step) {
    step(all.x, all.g, all.states[0], all.states[1], std::vector<at::Tensor>{}, numbers, hyper.lr,
         hyper.beta1, hyper.beta2, hyper.weight_decay, hyper.eps);
  };
  const auto adam = [](const auto&... numbers_and_tensors) {
    at::_fused_adam_(numbers_and_tensors..., /*amsgrad=*/false, /*maximize=*/false);
  };
  const auto adamw = [](const auto&... numbers_and_tensors) {
    at::_fused_adamw_(numbers_and_tensors..., /*amsgrad=*/false, /*maximize=*/false);
  };
  decouples_ ? fused(adamw) : fused(adam);
}

/// Formula at mix_accum_adam.
void DeviceOptimizer::step_accum_adam(const Together& all, const Hyper& hyper,
                                      std::int64_t t) const {
  const std::vector<at::Tensor>&m = all.states[0], &v = all.states[1], &b = all.states[2];
  const std::int64_t period = hyper.accumulate;
  const double share = 1 / static_cast<double>(period);
  const auto exponent = static_cast<double>(1 + (t - 1) / period);
  const double correction1 = 1 - std::pow(hyper.beta1, exponent);
  const double correction2 = 1 - std::pow(hyper.beta2, exponent);
  std::vector<at::Tensor> g = all.g;
  if (!decouples_ && hyper.weight_decay != 0) g = at::_foreach_add(g, all.x, hyper.weight_decay);
  if (t % period == 1 || period == 1) at::_foreach_zero_(b);
  at::_foreach_add_(b, g, share);
  std::vector<at::Tensor> used_m = at::_foreach_mul(m, hyper.beta1);
  at::_foreach_add_(used_m, g, 1 - hyper.beta1);
  std::vector<at::Tensor> used_v = at::_foreach_mul(v, hyper.beta2);
  at::_foreach_addcmul_(used_v, g, g, 1 - hyper.beta2);
  if (t % period == 0) {  // the moments absorb the mean gradient
    at::_foreach_mul_(m, hyper.beta1);
    at::_foreach_add_(m, b, 1 - hyper.beta1);
    at::_foreach_mul_(v, hyper.beta2);
    at::_foreach_addcmul_(v, b, b, 1 - hyper.beta2);
  }
  at::_foreach_sqrt_(used_v);
  at::_foreach_div_(used_v, std::sqrt(correction2));
  at::_foreach_add_(used_v, hyper.eps);
  if (decouples_) at::_foreach_mul_(all.x, 1 - hyper.lr * hyper.weight_decay);
  at::_foreach_addcdiv_(all.x, used_m, used_v, -hyper.lr / correction1);
}

const at::Tensor& DeviceOptimizer::state(int tensor, int k) const {
  return states_.at(at(tensor)).at(at(k));
}

std::int64_t DeviceOptimizer::updates(int tensor) const { return updates_.at(at(tensor)); }

void DeviceOptimizer::set_updates(int tensor, std::int64_t updates) {
  updates_.at(at(tensor)) = updates;
}

}  // namespace gossamer
