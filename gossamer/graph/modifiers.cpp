#include "gossamer/graph/modifiers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "gossamer/base/errors.h"
#include "gossamer/graph/algebra.h"

namespace gossamer {
namespace {

using Losses = std::span<const AgreedLoss>;

void check_at_least_one(std::string_view what, int value) {
  if (value >= 1) return;
  fail_argument({.place = "graph",
                 .what = std::string(what) + " must be at least 1",
                 .got = std::to_string(value)});
}

int period_or_never(std::int64_t period) {
  return period <= std::numeric_limits<int>::max() ? static_cast<int>(period) : 0;
}

std::string label(const Schedule& schedule, const std::string& modifier) {
  return schedule.name + " + " + modifier;
}

/// Copies everything but the round; the caller sets what the modifier changes. `modify` modifies
/// another schedule likewise.
template <class Modify>
Schedule renamed(const Schedule& schedule, std::string name, const Modify& modify) {
  Schedule result{.name = std::move(name),
                  .shape = schedule.shape,
                  .period = schedule.period,
                  .loss_driven = schedule.loss_driven,
                  .stochasticity = schedule.stochasticity,
                  .round = {}};
  if (schedule.on) {
    result.on = [inner = schedule.on, modify](const HostShape& shape) {
      return modify(inner(shape));
    };
  }
  return result;
}

/// The losses with their steps in the time of a schedule that runs faster or slower.
template <class ToInner>
std::vector<AgreedLoss> in_inner_time(Losses losses, const ToInner& to_inner) {
  std::vector<AgreedLoss> inner(losses.begin(), losses.end());
  for (AgreedLoss& loss : inner) loss.step = to_inner(loss.step);
  return inner;
}

}  // namespace

Schedule with_global_average(Schedule schedule, int every) {
  check_at_least_one("the distance between global averages", every);
  Schedule result =
      renamed(schedule, label(schedule, "global_average " + std::to_string(every)),
              [every](Schedule other) { return with_global_average(std::move(other), every); });
  if (every == 1) {
    result.period = 1;
    result.loss_driven = false;
  } else if (schedule.period > 0) {
    result.period = period_or_never(std::lcm(std::int64_t{schedule.period}, std::int64_t{every}));
  }
  result.round = [inner = std::move(schedule), every](std::int64_t t, Losses losses) {
    if ((t + 1) % every == 0) return complete_round(inner.shape.workers());
    return round_at(inner, t, losses);
  };
  return result;
}

std::int64_t adaptive_distance(double first_loss, double last_loss, int initial_every) {
  constexpr double kLongest = 1e9;
  const double ratio = first_loss / last_loss;
  if (!(first_loss > 0 && last_loss > 0) || !std::isfinite(ratio)) return initial_every;
  const double distance = std::ceil(std::pow(ratio, 0.25) * initial_every);
  return static_cast<std::int64_t>(std::clamp(distance, 1.0, kLongest));
}

Schedule with_adaptive_global_average(Schedule schedule, int initial_every) {
  check_at_least_one("the first distance between global averages", initial_every);
  Schedule result =
      renamed(schedule, label(schedule, "adaptive_global_average " + std::to_string(initial_every)),
              [initial_every](Schedule other) {
                return with_adaptive_global_average(std::move(other), initial_every);
              });
  result.period = 0;
  result.loss_driven = true;
  result.round = [inner = std::move(schedule), initial_every](std::int64_t t, Losses losses) {
    const auto newer = std::find_if(losses.begin(), losses.end(),
                                    [t](const AgreedLoss& loss) { return loss.step > t; });
    std::int64_t last_step = 0;
    std::int64_t distance = initial_every;
    if (newer != losses.begin()) {
      const AgreedLoss& last = *(newer - 1);
      last_step = last.step;
      distance = adaptive_distance(losses.front().loss, last.loss, initial_every);
    }
    if ((t + 1 - last_step) % distance == 0) return complete_round(inner.shape.workers());
    return round_at(inner, t, losses);
  };
  return result;
}

Schedule with_local_steps(Schedule schedule, int every) {
  check_at_least_one("the distance between mixing steps", every);
  Schedule result =
      renamed(schedule, label(schedule, "local_steps " + std::to_string(every)),
              [every](Schedule other) { return with_local_steps(std::move(other), every); });
  result.period = period_or_never(std::int64_t{schedule.period} * every);
  result.round = [inner = std::move(schedule), every](std::int64_t t, Losses losses) {
    if ((t + 1) % every != 0) return identity_round(inner.shape.workers());
    const auto mixed = in_inner_time(losses, [&](std::int64_t step) { return step / every; });
    return round_at(inner, t / every, mixed);
  };
  return result;
}

Schedule lazy(Schedule schedule) {
  Schedule result = renamed(schedule, label(schedule, "lazy"),
                            [](Schedule other) { return lazy(std::move(other)); });
  result.round = [inner = std::move(schedule)](std::int64_t t, Losses losses) {
    return half_lazy(round_at(inner, t, losses));
  };
  return result;
}

Schedule with_rounds_per_step(Schedule schedule, int rounds) {
  check_at_least_one("the number of rounds per step", rounds);
  Schedule result =
      renamed(schedule, label(schedule, "rounds_per_step " + std::to_string(rounds)),
              [rounds](Schedule other) { return with_rounds_per_step(std::move(other), rounds); });
  if (schedule.period > 0) result.period = schedule.period / std::gcd(schedule.period, rounds);
  result.round = [inner = std::move(schedule), rounds](std::int64_t t, Losses losses) {
    const auto counted = in_inner_time(losses, [&](std::int64_t step) { return step * rounds; });
    Round total = round_at(inner, t * rounds, counted);
    for (int k = 1; k < rounds; ++k) {
      total = product(round_at(inner, t * rounds + k, counted), total);
    }
    return total;
  };
  return result;
}

}  // namespace gossamer
