#include "gossamer/algo/pattern.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/base/errors.h"
#include "gossamer/graph/algebra.h"
#include "gossamer/graph/spectral_gap.h"

namespace gossamer {
namespace {

constexpr Payload kParameters[] = {Payload::parameters};
constexpr Payload kGradients[] = {Payload::gradients};
constexpr Payload kWithMomentum[] = {Payload::parameters, Payload::momentum};
constexpr Payload kWithMoments[] = {Payload::parameters, Payload::momentum, Payload::second};
constexpr Payload kWithOwn[] = {Payload::parameters, Payload::own};
constexpr Payload kOwn[] = {Payload::own};
constexpr std::string_view kCorrection[] = {"correction"};
constexpr std::string_view kGradient[] = {"gradient"};
constexpr std::string_view kTracker[] = {"tracker", "gradient"};
constexpr std::string_view kBefore[] = {"before"};
constexpr std::string_view kOuter[] = {"anchor", "velocity"};
constexpr std::string_view kOuterOptions[] = {"outer_every", "outer_momentum", "outer_lr"};
constexpr std::string_view kMomentsOptions[] = {"noise_share", "consensus"};
constexpr std::string_view kConsensus[] = {"consensus"};
constexpr std::string_view kHeavyBall[] = {"momentum"};
constexpr std::string_view kHasMomentum[] = {"momentum", "adam", "adamw", "accum_adam",
                                             "accum_adamw"};
constexpr std::string_view kHasMoments[] = {"adam", "adamw", "accum_adam", "accum_adamw"};

constexpr Pattern kPatterns[] = {
    {.name = "cwa",
     .summary = "combine while adapt: parameters travel during forward and backward",
     .launch = Launch::after_previous_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .state = {},
     .own_step = true,
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = cwa_combine<float>,
     .combine_f64 = cwa_combine<double>},
    {.name = "cwa_moments",
     .summary = "cwa that averages Adam's moments as well",
     .launch = Launch::after_previous_update,
     .rounds = Rounds::schedule,
     .payloads = kWithMoments,
     .state = {},
     .optimizers = kHasMoments,
     .options = kMomentsOptions,
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = cwa_moments_combine<float>,
     .combine_f64 = cwa_moments_combine<double>},
    {.name = "gradient_gossip",
     .summary = "cwa that averages the gradients as well, which leave during the backward",
     .launch = Launch::after_previous_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .then = kOwn,
     .state = kGradient,
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .middle_f32 = gradient_gossip_middle<float>,
     .middle_f64 = gradient_gossip_middle<double>,
     .combine_f32 = gradient_gossip_combine<float>,
     .combine_f64 = gradient_gossip_combine<double>},
    {.name = "atc",
     .summary = "adapt then combine: local update first, then the mix waits for the neighbours",
     .launch = Launch::after_local_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .state = {},
     .own_step = true,
     .only_mixes = true,
     .prepare_f32 = atc_prepare<float>,
     .prepare_f64 = atc_prepare<double>,
     .combine_f32 = atc_combine<float>,
     .combine_f64 = atc_combine<double>},
    {.name = "allreduce",
     .summary = "every gradient is averaged over all workers: the baseline",
     .launch = Launch::before_update,
     .rounds = Rounds::complete,
     .payloads = kGradients,
     .state = {},
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = allreduce_combine<float>,
     .combine_f64 = allreduce_combine<double>},
    {.name = "exact_diffusion",
     .summary = "removes the bias that unequal data leave: adapt, correct, combine",
     .launch = Launch::after_local_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .state = kCorrection,
     .is_static = true,
     .above = -1. / 3,
     .own_step = true,
     .prepare_f32 = exact_diffusion_prepare<float>,
     .prepare_f64 = exact_diffusion_prepare<double>,
     .combine_f32 = exact_diffusion_combine<float>,
     .combine_f64 = exact_diffusion_combine<double>},
    {.name = "extra",
     .summary = "the same correction with parameters that travel during forward and backward",
     .launch = Launch::after_previous_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .state = kCorrection,
     .is_static = true,
     .own_step = true,
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = extra_combine<float>,
     .combine_f64 = extra_combine<double>},
    {.name = "gradient_tracking",
     .summary = "every worker follows the mean gradient; sends parameters and tracker",
     .launch = Launch::after_previous_update,
     .rounds = Rounds::schedule,
     .payloads = kWithOwn,
     .state = kTracker,
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = gradient_tracking_combine<float>,
     .combine_f64 = gradient_tracking_combine<double>},
    {.name = "dmsgd",
     .summary = "atc that averages the momentum as well",
     .launch = Launch::after_local_update,
     .rounds = Rounds::schedule,
     .payloads = kWithMomentum,
     .state = {},
     .optimizers = kHasMomentum,
     .prepare_f32 = atc_prepare<float>,
     .prepare_f64 = atc_prepare<double>,
     .combine_f32 = dmsgd_combine<float>,
     .combine_f64 = dmsgd_combine<double>},
    {.name = "qg_dmsgd",
     .summary = "quasi-global momentum: it follows the mixed parameters",
     .launch = Launch::after_local_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .state = kBefore,
     .optimizers = kHeavyBall,
     .prepare_f32 = qg_dmsgd_prepare<float>,
     .prepare_f64 = qg_dmsgd_prepare<double>,
     .combine_f32 = qg_dmsgd_combine<float>,
     .combine_f64 = qg_dmsgd_combine<double>},
    {.name = "gradient_tracking_atc",
     .summary = "gradient tracking that mixes the tracker first, then steps and mixes",
     .launch = Launch::after_local_update,
     .rounds = Rounds::schedule,
     .payloads = kOwn,
     .then = kParameters,
     .state = kTracker,
     .only_mixes = true,
     .prepare_f32 = gradient_tracking_atc_prepare<float>,
     .prepare_f64 = gradient_tracking_atc_prepare<double>,
     .middle_f32 = gradient_tracking_atc_middle<float>,
     .middle_f64 = gradient_tracking_atc_middle<double>,
     .combine_f32 = atc_combine<float>,
     .combine_f64 = atc_combine<double>},
    {.name = "push_sum",
     .summary = "atc on directed graphs: what a worker hears is weighed by what it has heard",
     .launch = Launch::after_local_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .state = {},
     .only_mixes = true,
     .weighs = true,
     .prepare_f32 = push_sum_prepare<float>,
     .prepare_f64 = push_sum_prepare<double>,
     .combine_f32 = atc_combine<float>,
     .combine_f64 = atc_combine<double>},
    {.name = "slowmo",
     .summary = "atc with an outer momentum from one global average to the next",
     .launch = Launch::after_local_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .state = kOuter,
     .anchors = 1,
     .options = kOuterOptions,
     .outer = Outer::global_average,
     .prepare_f32 = atc_prepare<float>,
     .prepare_f64 = atc_prepare<double>,
     .combine_f32 = slowmo_combine<float>,
     .combine_f64 = slowmo_combine<double>},
    {.name = "noloco",
     .summary = "the same between neighbours, who mix what they started the phase with as well",
     .launch = Launch::after_local_update,
     .rounds = Rounds::schedule,
     .payloads = kWithOwn,
     .state = kOuter,
     .anchors = 1,
     .options = kOuterOptions,
     .outer = Outer::any_round,
     .prepare_f32 = atc_prepare<float>,
     .prepare_f64 = atc_prepare<double>,
     .combine_f32 = noloco_combine<float>,
     .combine_f64 = noloco_combine<double>},
    {.name = "dsgd_ac",
     .summary = "cwa that takes a share of the mix only, so that the workers stay apart",
     .launch = Launch::after_previous_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .state = {},
     .options = kConsensus,
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = dsgd_ac_combine<float>,
     .combine_f64 = dsgd_ac_combine<double>},
};

std::string subject(const Pattern& pattern) { return "pattern " + std::string(pattern.name); }

bool fits(const Pattern& pattern, std::string_view optimizer) {
  return pattern.optimizers.empty() ||
         std::ranges::find(pattern.optimizers, optimizer) != pattern.optimizers.end();
}

[[noreturn]] void refuse_optimizer(const Pattern& pattern, std::string_view optimizer) {
  std::string names;
  for (std::string_view name : pattern.optimizers) {
    if (!names.empty()) names += ", ";
    names += name;
  }
  fail_argument({.place = "pattern",
                 .what = subject(pattern) + " works on the momentum of the optimizer",
                 .got = std::string(optimizer),
                 .remedy = "choose one of: " + names});
}

[[noreturn]] void refuse_changing(const Pattern& pattern, const Schedule& schedule) {
  fail_argument({.place = "pattern",
                 .what = subject(pattern) + " needs the same symmetric W in every step",
                 .got = schedule.name,
                 .remedy = "choose a topology such as ring, grid, torus or complete, or pattern "
                           "gradient_tracking, which follows any"});
}

[[noreturn]] void refuse_eigenvalues(const Pattern& pattern, const Schedule& schedule) {
  fail_argument({.place = "pattern",
                 .what = subject(pattern) + " needs all eigenvalues of W above " +
                         std::to_string(pattern.above),
                 .got = "some of " + schedule.name + " that are not",
                 .remedy = "modify the topology with lazy: (I + W)/2"});
}

bool takes_weights(const Pattern& pattern, const Schedule& schedule) {
  const bool is_doubly = schedule.stochasticity == Stochasticity::doubly;
  return is_doubly || pattern.rounds == Rounds::complete ||
         (pattern.weighs && schedule.stochasticity == Stochasticity::column);
}

[[noreturn]] void refuse_weights(const Pattern& pattern, const Schedule& schedule) {
  fail_argument({.place = "pattern",
                 .what = subject(pattern) + " needs doubly stochastic W",
                 .got = schedule.name,
                 .remedy =
                     "choose a topology whose weights are symmetric or circulant, or, where the "
                     "columns sum to 1, pattern push_sum"});
}

/// Looks at the outer steps of a period, or at the first ones.
bool averages_globally(const Schedule& schedule, int every) {
  constexpr std::int64_t kMost = 64;
  const std::int64_t turns =
      schedule.period == 0 ? kMost : schedule.period / std::gcd(schedule.period, every);
  for (std::int64_t k = 1; k <= std::min(turns, kMost); ++k) {
    const Round round = round_at(schedule, k * every - 1);
    if (round.workers > 1 && !is_global_average(round)) return false;
  }
  return true;
}

/// outer_every of the first group, or of the first whose number cannot be.
std::string outer_every_of(std::span<const Hyper> groups) {
  const auto wrong = std::ranges::find_if(groups, [](const Hyper& h) { return h.outer_every < 1; });
  return std::to_string((wrong == groups.end() ? groups.front() : *wrong).outer_every);
}

[[noreturn]] void refuse_no_outer_steps(const Pattern& pattern, std::span<const Hyper> groups) {
  fail_argument({.place = "pattern",
                 .what = subject(pattern) + " makes an outer step in every outer_every-th round",
                 .got = "outer_every = " + outer_every_of(groups),
                 .remedy = "set outer_every (--outer-every H) to 1 or more"});
}

[[noreturn]] void refuse_no_global_averages(const Pattern& pattern, const Schedule& schedule,
                                            std::span<const Hyper> groups) {
  const std::string every = outer_every_of(groups);
  fail_argument({.place = "pattern",
                 .what = subject(pattern) + " needs a global average in every outer_every-th round",
                 .got = schedule.name + " with outer_every = " + every,
                 .remedy = "modify the topology with global_average (--global-average " + every +
                           "), or choose pattern noloco"});
}

}  // namespace

std::span<const Pattern> patterns() { return kPatterns; }

const Pattern& find_pattern(std::string_view name) {
  const auto found = std::ranges::find(kPatterns, name, &Pattern::name);
  if (found != std::end(kPatterns)) return *found;
  std::vector<std::string_view> names;
  for (const Pattern& pattern : kPatterns) names.push_back(pattern.name);
  fail_unknown_name("pattern", "pattern", name, names);
}

Condition unmet_condition(const Pattern& pattern, std::string_view optimizer,
                          const Schedule& schedule, std::span<const Hyper> groups) {
  if (!fits(pattern, optimizer)) return Condition::optimizer;
  if (!takes_weights(pattern, schedule)) return Condition::doubly_stochastic;
  if (pattern.is_static) {
    const Round round = round_at(schedule, 0);
    const bool is_static = schedule.period == 1 && !schedule.loss_driven;
    if (!is_static || !is_symmetric(round)) return Condition::static_symmetric;
    if (!eigenvalues_above(round, pattern.above)) return Condition::eigenvalues;
  }
  if (pattern.outer == Outer::never) return Condition::none;
  for (const Hyper& hyper : groups) {
    if (hyper.outer_every < 1) return Condition::outer_steps;
    if (pattern.outer != Outer::global_average) continue;
    if (schedule.loss_driven || !averages_globally(schedule, hyper.outer_every)) {
      return Condition::global_averages;
    }
  }
  return Condition::none;
}

void check_pattern(const Pattern& pattern, std::string_view optimizer, const Schedule& schedule,
                   std::span<const Hyper> groups) {
  switch (unmet_condition(pattern, optimizer, schedule, groups)) {
    case Condition::none:
      return;
    case Condition::optimizer:
      refuse_optimizer(pattern, optimizer);
    case Condition::doubly_stochastic:
      refuse_weights(pattern, schedule);
    case Condition::static_symmetric:
      refuse_changing(pattern, schedule);
    case Condition::eigenvalues:
      refuse_eigenvalues(pattern, schedule);
    case Condition::outer_steps:
      refuse_no_outer_steps(pattern, groups);
    case Condition::global_averages:
      refuse_no_global_averages(pattern, schedule, groups);
  }
}

}  // namespace gossamer
