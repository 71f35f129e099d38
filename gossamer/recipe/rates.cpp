#include "gossamer/recipe/rates.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "gossamer/base/choice.h"
#include "gossamer/recipe/recipe.h"

namespace gossamer {
namespace {

constexpr Choice<LrSchedule> kLrSchedules[] = {{"constant", LrSchedule::constant},
                                               {"cosine", LrSchedule::cosine},
                                               {"inverse_sqrt", LrSchedule::inverse_sqrt}};

double cosine_factor(const OptimizerSection& optimizer, const RunSection& run, double step) {
  const double span = std::max(1.0, static_cast<double>(run.steps - optimizer.warmup));
  const double progress = std::min(1.0, (step - static_cast<double>(optimizer.warmup)) / span);
  const double wave = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return optimizer.final_lr + (1 - optimizer.final_lr) * wave;
}

}  // namespace

std::string_view name_of(LrSchedule schedule) { return name_in(kLrSchedules, schedule); }

LrSchedule find_lr_schedule(std::string_view name) {
  return choose(kLrSchedules, name, {"train", "lr_schedule"});
}

std::vector<std::string_view> lr_schedule_names() { return names_in(kLrSchedules); }

double lr_factor(const OptimizerSection& optimizer, const RunSection& run, std::int64_t t) {
  const auto step = static_cast<double>(t);
  const auto warmup = static_cast<double>(std::max<std::int64_t>(optimizer.warmup, 1));
  if (t < optimizer.warmup) return step / warmup;
  switch (optimizer.lr_schedule) {
    case LrSchedule::constant:
      return 1;
    case LrSchedule::cosine:
      return cosine_factor(optimizer, run, step);
    case LrSchedule::inverse_sqrt:
      return std::sqrt(warmup / std::max(step, warmup));
  }
  __builtin_unreachable();
}

double consensus_factor(const AlgorithmSection& algorithm, double lr_factor) {
  if (algorithm.pattern->name != "dsgd_ac") return algorithm.consensus;
  return algorithm.consensus * std::pow(lr_factor, algorithm.consensus_power);
}

}  // namespace gossamer
