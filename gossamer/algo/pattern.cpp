#include "gossamer/algo/pattern.h"

#include <algorithm>
#include <iterator>
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
    GOSSAMER_ASSERT(std::size(kPasses<float>) == pattern_facts().size());
    std::vector<Pattern> made;
    for (const PatternFacts& facts : pattern_facts()) {
      made.push_back({facts, passes_of<float>(facts.name), passes_of<double>(facts.name)});
    }
    return made;
  }();
  return rows;
}

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
  fail_argument(
      {.place = "pattern",
       .what = "pattern " + std::string(pattern.name) + " works on the momentum of the optimizer",
       .got = std::string(optimizer),
       .remedy = "choose one of: " + names});
}

/// By group.
std::vector<int> outer_every_of(std::span<const Hyper> groups) {
  std::vector<int> all;
  for (const Hyper& hyper : groups) all.push_back(hyper.outer_every);
  return all;
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
  return unmet_condition(pattern, schedule, outer_every_of(groups));
}

void check_pattern(const Pattern& pattern, std::string_view optimizer, const Schedule& schedule,
                   std::span<const Hyper> groups) {
  if (!fits(pattern, optimizer)) refuse_optimizer(pattern, optimizer);
  check_conditions(pattern, schedule, outer_every_of(groups));
}

}  // namespace gossamer
