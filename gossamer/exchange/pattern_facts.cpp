#include "gossamer/exchange/pattern_facts.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/graph/algebra.h"
#include "gossamer/graph/parts.h"
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

constexpr PatternFacts kPatterns[] = {
    {.name = "cwa",
     .summary = "combine while adapt: parameters travel during forward and backward",
     .payloads = kParameters,
     .own_step = true,
     .device_copies = DeviceCopies::corrections},
    {.name = "cwa_moments",
     .summary = "cwa that averages Adam's moments as well",
     .payloads = kWithMoments,
     .optimizers = kHasMoments,
     .options = kMomentsOptions},
    {.name = "gradient_gossip",
     .summary = "cwa that averages the gradients as well, which leave during the backward",
     .payloads = kParameters,
     .then = kOwn,
     .usual_update = UpdateAt::backward,
     .state = kGradient,
     .averages_first = true},
    {.name = "atc",
     .summary = "adapt then combine: local update first, then the mix waits for the neighbours",
     .launch = Launch::after_local_update,
     .payloads = kParameters,
     .own_step = true,
     .device_copies = DeviceCopies::corrections,
     .only_mixes = true},
    {.name = "allreduce",
     .summary = "every gradient is averaged over all workers: the baseline",
     .launch = Launch::before_update,
     .rounds = Rounds::complete,
     .payloads = kGradients,
     .usual_update = UpdateAt::backward,
     .averages_first = true,
     .device_copies = DeviceCopies::gradients},
    {.name = "exact_diffusion",
     .summary = "removes the bias that unequal data leave: adapt, correct, combine",
     .launch = Launch::after_local_update,
     .payloads = kParameters,
     .state = kCorrection,
     .is_static = true,
     .above = -1. / 3,
     .own_step = true,
     .conserves = true},
    {.name = "extra",
     .summary = "the same correction with parameters that travel during forward and backward",
     .payloads = kParameters,
     .state = kCorrection,
     .is_static = true,
     .own_step = true,
     .conserves = true},
    {.name = "gradient_tracking",
     .summary = "every worker follows the mean gradient; sends parameters and tracker",
     .payloads = kWithOwn,
     .state = kTracker,
     .conserves = true},
    {.name = "dmsgd",
     .summary = "atc that averages the momentum as well",
     .launch = Launch::after_local_update,
     .payloads = kWithMomentum,
     .optimizers = kHasMomentum},
    {.name = "qg_dmsgd",
     .summary = "quasi-global momentum: it follows the mixed parameters",
     .launch = Launch::after_local_update,
     .payloads = kParameters,
     .state = kBefore,
     .optimizers = kHeavyBall},
    {.name = "gradient_tracking_atc",
     .summary = "gradient tracking that mixes the tracker first, then steps and mixes",
     .launch = Launch::after_local_update,
     .payloads = kOwn,
     .then = kParameters,
     .state = kTracker,
     .conserves = true,
     .only_mixes = true},
    {.name = "push_sum",
     .summary = "atc on directed graphs: what a worker hears is weighed by what it has heard",
     .launch = Launch::after_local_update,
     .payloads = kParameters,
     .conserves = true,
     .only_mixes = true,
     .weighs = true},
    {.name = "slowmo",
     .summary = "atc with an outer momentum from one global average to the next",
     .launch = Launch::after_local_update,
     .payloads = kParameters,
     .state = kOuter,
     .anchors = 1,
     .options = kOuterOptions,
     .outer = Outer::global_average},
    {.name = "noloco",
     .summary = "the same between neighbours, who mix what they started the phase with as well",
     .launch = Launch::after_local_update,
     .payloads = kWithOwn,
     .state = kOuter,
     .anchors = 1,
     .options = kOuterOptions,
     .outer = Outer::any_round},
    {.name = "dsgd_ac",
     .summary = "cwa that takes a share of the mix only, so that the workers stay apart",
     .payloads = kParameters,
     .options = kConsensus},
};

constexpr PatternFacts kDdp = {
    .name = "ddp",
    .summary = "DistributedDataParallel: flat rings, one bucket after the other",
    .launch = Launch::before_update,
    .rounds = Rounds::complete,
    .payloads = kGradients,
    .usual_update = UpdateAt::backward,
    .device_copies = DeviceCopies::none,
    .is_ddp = true};

bool takes_weights(const PatternFacts& pattern, const Schedule& schedule) {
  const bool is_doubly = schedule.stochasticity == Stochasticity::doubly;
  return is_doubly || pattern.rounds == Rounds::complete ||
         (pattern.weighs && schedule.stochasticity == Stochasticity::column);
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

std::string subject(const PatternFacts& pattern) { return "pattern " + std::string(pattern.name); }

[[noreturn]] void refuse_changing(const PatternFacts& pattern, const Schedule& schedule) {
  fail_argument({.place = "pattern",
                 .what = subject(pattern) + " needs the same symmetric W in every step",
                 .got = schedule.name,
                 .remedy = "choose a topology such as ring, grid, torus or complete, or pattern "
                           "gradient_tracking, which follows any"});
}

[[noreturn]] void refuse_eigenvalues(const PatternFacts& pattern, const Schedule& schedule) {
  fail_argument({.place = "pattern",
                 .what = subject(pattern) + " needs all eigenvalues of W above " +
                         std::to_string(pattern.above),
                 .got = "some of " + schedule.name + " that are not",
                 .remedy = "modify the topology with lazy: (I + W)/2"});
}

[[noreturn]] void refuse_weights(const PatternFacts& pattern, const Schedule& schedule) {
  if (pattern.weighs) {
    fail_argument({.place = "pattern",
                   .what = subject(pattern) + " needs W whose columns sum to 1",
                   .got = schedule.name,
                   .remedy = "where its rows do, give the transposed matrices, or weights by which "
                             "each worker shares out all that it has"});
  }
  fail_argument({.place = "pattern",
                 .what = subject(pattern) + " needs doubly stochastic W",
                 .got = schedule.name,
                 .remedy =
                     "choose a topology whose weights are symmetric or circulant, or, where the "
                     "columns sum to 1, pattern push_sum"});
}

/// That of the first group, or of the first whose number cannot be.
std::string shown(std::span<const int> outer_every) {
  const auto wrong = std::ranges::find_if(outer_every, [](int every) { return every < 1; });
  return std::to_string(wrong == outer_every.end() ? outer_every.front() : *wrong);
}

[[noreturn]] void refuse_no_outer_steps(const PatternFacts& pattern,
                                        std::span<const int> outer_every) {
  fail_argument({.place = "pattern",
                 .what = subject(pattern) + " makes an outer step in every outer_every-th round",
                 .got = "outer_every = " + shown(outer_every),
                 .remedy = "set outer_every (--outer-every H) to 1 or more"});
}

[[noreturn]] void refuse_no_global_averages(const PatternFacts& pattern, const Schedule& schedule,
                                            std::span<const int> outer_every) {
  const std::string every = shown(outer_every);
  fail_argument({.place = "pattern",
                 .what = subject(pattern) + " needs a global average in every outer_every-th round",
                 .got = schedule.name + " with outer_every = " + every,
                 .remedy = "modify the topology with global_average (--global-average " + every +
                           "), or choose pattern noloco"});
}

}  // namespace

std::span<const PatternFacts> pattern_facts() { return kPatterns; }

const PatternFacts& ddp_facts() { return kDdp; }

const PatternFacts& find_pattern_facts(std::string_view name) {
  const auto found = std::ranges::find(kPatterns, name, &PatternFacts::name);
  if (found != std::end(kPatterns)) return *found;
  std::vector<std::string_view> names;
  for (const PatternFacts& pattern : kPatterns) names.push_back(pattern.name);
  fail_unknown_name("pattern", "pattern", name, names);
}

bool averages_gradients(const PatternFacts& pattern) { return pattern.rounds == Rounds::complete; }

bool sends_parameters_ahead(const PatternFacts& pattern) {
  return pattern.launch == Launch::after_previous_update && pattern.then.empty() &&
         std::ranges::all_of(pattern.payloads, [](Payload p) { return p == Payload::parameters; });
}

bool settles(const PatternFacts& pattern) {
  return averages_gradients(pattern) || pattern.conserves;
}

bool may_skip_late(const PatternFacts& pattern) {
  return pattern.launch == Launch::after_previous_update && pattern.stages() == 1 &&
         pattern.payloads.size() == 1 && !pattern.is_static;
}

Condition unmet_condition(const PatternFacts& pattern, const Schedule& schedule,
                          std::span<const int> outer_every) {
  if (!takes_weights(pattern, schedule)) return Condition::doubly_stochastic;
  if (pattern.is_static) {
    const Round round = round_at(schedule, 0);
    const bool is_static = schedule.period == 1 && !schedule.loss_driven;
    if (!is_static || !is_symmetric(round)) return Condition::static_symmetric;
    if (!eigenvalues_above(round, pattern.above)) return Condition::eigenvalues;
  }
  if (pattern.outer == Outer::never) return Condition::none;
  for (const int every : outer_every) {
    if (every < 1) return Condition::outer_steps;
    if (pattern.outer != Outer::global_average) continue;
    if (schedule.loss_driven || !averages_globally(schedule, every)) {
      return Condition::global_averages;
    }
  }
  return Condition::none;
}

void check_conditions(const PatternFacts& pattern, const Schedule& schedule,
                      std::span<const int> outer_every) {
  switch (unmet_condition(pattern, schedule, outer_every)) {
    case Condition::none:
    case Condition::optimizer:
      if (pattern.rounds == Rounds::schedule) check_one_part(schedule);
      return;
    case Condition::doubly_stochastic:
      refuse_weights(pattern, schedule);
    case Condition::static_symmetric:
      refuse_changing(pattern, schedule);
    case Condition::eigenvalues:
      refuse_eigenvalues(pattern, schedule);
    case Condition::outer_steps:
      refuse_no_outer_steps(pattern, outer_every);
    case Condition::global_averages:
      refuse_no_global_averages(pattern, schedule, outer_every);
  }
}

}  // namespace gossamer
