#include "gossamer/exchange/method.h"

#include <algorithm>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& got,
                         const std::string& remedy) {
  fail_argument({.place = "method", .what = what, .got = got, .remedy = remedy});
}

void check_options(const MethodSpec& method, const PatternFacts& pattern) {
  for (const PatternOption& option : method.options) {
    if (std::ranges::find(pattern.options, option.name) != pattern.options.end()) continue;
    std::string valid;
    for (const std::string_view name : pattern.options) {
      valid += (valid.empty() ? "it has " : ", ") + std::string(name);
    }
    refuse("pattern " + std::string(pattern.name) + " has no number of this name", option.name,
           valid.empty() ? "leave it out" : valid);
  }
}

void check_condition(const MethodSpec& method, const PatternFacts& pattern,
                     const Schedule& schedule) {
  const int every[] = {static_cast<int>(option_of(method, "outer_every", 0))};
  const std::string subject = "pattern " + std::string(pattern.name);
  switch (unmet_condition(pattern, schedule, every)) {
    case Condition::none:
    case Condition::optimizer:
      return;
    case Condition::doubly_stochastic:
      refuse(subject + " needs doubly stochastic W", schedule.name,
             "take pattern push_sum, or another topology");
    case Condition::static_symmetric:
      refuse(subject + " needs the same symmetric W in every step", schedule.name,
             "take ring, grid, torus or complete, or pattern gradient_tracking");
    case Condition::eigenvalues:
      refuse(subject + " needs all eigenvalues of W above " + std::to_string(pattern.above),
             "some of " + schedule.name + " that are not", "add lazy: (I + W)/2");
    case Condition::outer_steps:
      refuse(subject + " makes an outer step in every outer_every-th round",
             "outer_every = " + std::to_string(every[0]), "add outer_every=8, or another number");
    case Condition::global_averages:
      refuse(subject + " needs a global average in every outer_every-th round",
             schedule.name + " with outer_every = " + std::to_string(every[0]),
             "add average=" + std::to_string(every[0]) + ", or take pattern noloco");
  }
}

}  // namespace

const PatternFacts& facts_of(const MethodSpec& method) {
  return method.pattern == ddp_facts().name ? ddp_facts() : find_pattern_facts(method.pattern);
}

bool averages_gradients(const MethodSpec& method) { return averages_gradients(facts_of(method)); }

UpdateAt update_of(const MethodSpec& method) {
  return method.update.value_or(facts_of(method).usual_update);
}

GroupMethod group_method_of(const MethodSpec& method) {
  const PatternFacts& pattern = facts_of(method);
  return method.group_method.value_or(pattern.is_ddp ? GroupMethod::ring
                                                     : GroupMethod::hierarchical);
}

double option_of(const MethodSpec& method, std::string_view name, double usual) {
  const auto found = std::ranges::find(method.options, name, &PatternOption::name);
  return found == method.options.end() ? usual : found->value;
}

Schedule schedule_of(const MethodSpec& method, const HostShape& shape) {
  const PatternFacts& pattern = facts_of(method);
  if (pattern.rounds == Rounds::complete) return complete_schedule(shape);
  Schedule schedule = make_schedule(method.schedule, shape);
  check_condition(method, pattern, schedule);
  return schedule;
}

PlanOptions plan_options(const PatternFacts& pattern, GroupMethod group_method, Codec codec,
                         Late late) {
  return {.group_method = group_method,
          .finished_averages = pattern.rounds == Rounds::complete,
          .separate_neighbours = late == Late::skip,
          .codec = codec};
}

PlanOptions plan_options(const MethodSpec& method) {
  return plan_options(facts_of(method), group_method_of(method), method.codec, method.late);
}

void check_method(const MethodSpec& method, const HostShape& shape) {
  const PatternFacts& pattern = facts_of(method);
  check_options(method, pattern);
  const bool is_hierarchical = group_method_of(method) == GroupMethod::hierarchical;
  if (method.codec != Codec::fp32 && !is_hierarchical) {
    refuse("a codec needs hierarchical group averages", std::string(name_of(method.codec)),
           pattern.is_ddp ? "take allreduce:" + std::string(name_of(method.codec))
                          : "leave the group method out, or the codec");
  }
  const Schedule schedule = schedule_of(method, shape);
  if (method.codec != Codec::fp32 && schedule.stochasticity != Stochasticity::doubly) {
    refuse("a codec preserves the mean with doubly stochastic W only", schedule.name,
           "take another topology, or leave the codec out");
  }
  if (update_of(method) == UpdateAt::backward && schedule.loss_driven) {
    refuse("a schedule that is driven by the loss needs its updates after the backward",
           schedule.name, "leave 'backward' out");
  }
  if (method.late == Late::wait) return;
  if (!may_skip_late(pattern)) {
    refuse("late = skip needs payloads that are sent a step ahead",
           "pattern " + std::string(pattern.name), "take pattern cwa, or leave 'skip' out");
  }
  if (schedule.period == 0) {
    refuse("late = skip needs a schedule with a period", schedule.name,
           "take another topology, or leave 'skip' out");
  }
}

}  // namespace gossamer
