#include "gossamer/algo/pattern.h"

#include <algorithm>
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
constexpr Payload kCopy[] = {Payload::copy};
constexpr Payload kWithMomentum[] = {Payload::parameters, Payload::momentum};
constexpr Payload kWithOwn[] = {Payload::parameters, Payload::own};
constexpr std::string_view kSent[] = {"sent"};
constexpr std::string_view kCorrection[] = {"correction"};
constexpr std::string_view kSentAndCorrection[] = {"sent", "correction"};
constexpr std::string_view kTracker[] = {"tracker", "gradient"};
constexpr std::string_view kBefore[] = {"before"};
constexpr std::string_view kHeavyBall[] = {"momentum"};
constexpr std::string_view kHasMomentum[] = {"momentum", "adam", "adamw", "accum_adam",
                                             "accum_adamw"};

constexpr Pattern kPatterns[] = {
    {.name = "cwa",
     .summary = "combine while adapt: parameters travel during forward and backward",
     .launch = Launch::after_previous_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .state = {},
     .own_step = "cwa_difference",
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = cwa_combine<float>,
     .combine_f64 = cwa_combine<double>},
    {.name = "cwa_difference",
     .summary = "as cwa for parameters that change while they travel; sends a copy",
     .launch = Launch::after_previous_update,
     .rounds = Rounds::schedule,
     .payloads = kCopy,
     .state = kSent,
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = cwa_difference_combine<float>,
     .combine_f64 = cwa_difference_combine<double>},
    {.name = "atc",
     .summary = "adapt then combine: local update first, then the mix waits for the neighbours",
     .launch = Launch::after_local_update,
     .rounds = Rounds::schedule,
     .payloads = kParameters,
     .state = {},
     .own_step = "atc",
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
     .own_step = "exact_diffusion",
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
     .own_step = "extra_difference",
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = extra_combine<float>,
     .combine_f64 = extra_combine<double>},
    {.name = "extra_difference",
     .summary = "as extra for parameters that change while they travel; sends a copy",
     .launch = Launch::after_previous_update,
     .rounds = Rounds::schedule,
     .payloads = kCopy,
     .state = kSentAndCorrection,
     .is_static = true,
     .prepare_f32 = nullptr,
     .prepare_f64 = nullptr,
     .combine_f32 = extra_difference_combine<float>,
     .combine_f64 = extra_difference_combine<double>},
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
                          const Schedule& schedule) {
  if (!fits(pattern, optimizer)) return Condition::optimizer;
  if (!pattern.is_static) return Condition::none;
  const Round round = round_at(schedule, 0);
  const bool is_static = schedule.period == 1 && !schedule.loss_driven;
  if (!is_static || !is_symmetric(round)) return Condition::static_symmetric;
  return eigenvalues_above(round, pattern.above) ? Condition::none : Condition::eigenvalues;
}

void check_pattern(const Pattern& pattern, std::string_view optimizer, const Schedule& schedule) {
  switch (unmet_condition(pattern, optimizer, schedule)) {
    case Condition::none:
      return;
    case Condition::optimizer:
      refuse_optimizer(pattern, optimizer);
    case Condition::static_symmetric:
      refuse_changing(pattern, schedule);
    case Condition::eigenvalues:
      refuse_eigenvalues(pattern, schedule);
  }
}

}  // namespace gossamer
