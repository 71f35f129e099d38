#include "gossamer/algo/pattern.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gossamer/algo/algorithms/algorithms.h"
#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

/// By name of the facts' rows (exchange/pattern_facts.cpp).
template <class T>
constexpr Passes<T> kPasses[] = {
    {.name = "cwa", .combine = cwa_combine<T>},
    {.name = "cwa_moments", .combine = cwa_moments_combine<T>},
    {.name = "gradient_gossip",
     .middle = gradient_gossip_middle<T>,
     .combine = gradient_gossip_combine<T>},
    {.name = "atc", .prepare = atc_prepare<T>, .combine = atc_combine<T>},
    {.name = "allreduce", .combine = allreduce_combine<T>},
    {.name = "exact_diffusion",
     .prepare = exact_diffusion_prepare<T>,
     .combine = exact_diffusion_combine<T>},
    {.name = "extra", .combine = extra_combine<T>},
    {.name = "gradient_tracking", .combine = gradient_tracking_combine<T>},
    {.name = "dmsgd", .prepare = atc_prepare<T>, .combine = dmsgd_combine<T>},
    {.name = "qg_dmsgd", .prepare = qg_dmsgd_prepare<T>, .combine = qg_dmsgd_combine<T>},
    {.name = "gradient_tracking_atc",
     .prepare = gradient_tracking_atc_prepare<T>,
     .middle = gradient_tracking_atc_middle<T>,
     .combine = atc_combine<T>},
    {.name = "push_sum", .prepare = push_sum_prepare<T>, .combine = atc_combine<T>},
    {.name = "slowmo", .prepare = atc_prepare<T>, .combine = slowmo_combine<T>},
    {.name = "noloco", .prepare = atc_prepare<T>, .combine = noloco_combine<T>},
    {.name = "dsgd_ac", .combine = dsgd_ac_combine<T>},
};

template <class T>
const Passes<T>& passes_of(std::string_view name) {
  const auto found = std::ranges::find(kPasses<T>, name, &Passes<T>::name);
  GOSSAMER_ASSERT(found != std::end(kPasses<T>));
  return *found;
}

/// The rows of the facts with their passes.
const std::vector<Pattern>& table() {
  static const std::vector<Pattern> rows = [] {
    std::vector<Pattern> made;
    for (const PatternFacts& facts : pattern_facts()) {
      made.push_back({facts, passes_of<float>(facts.name), passes_of<double>(facts.name)});
    }
    return made;
  }();
  return rows;
}

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

[[noreturn]] void refuse_weights(const Pattern& pattern, const Schedule& schedule) {
  fail_argument({.place = "pattern",
                 .what = subject(pattern) + " needs doubly stochastic W",
                 .got = schedule.name,
                 .remedy =
                     "choose a topology whose weights are symmetric or circulant, or, where the "
                     "columns sum to 1, pattern push_sum"});
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

std::span<const Pattern> patterns() { return table(); }

const Pattern& find_pattern(std::string_view name) {
  const PatternFacts& facts = find_pattern_facts(name);
  return table()[static_cast<std::size_t>(&facts - pattern_facts().data())];
}

Condition unmet_condition(const Pattern& pattern, std::string_view optimizer,
                          const Schedule& schedule, std::span<const Hyper> groups) {
  if (!fits(pattern, optimizer)) return Condition::optimizer;
  std::vector<int> outer_every;
  for (const Hyper& hyper : groups) outer_every.push_back(hyper.outer_every);
  return unmet_condition(pattern, schedule, outer_every);
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
