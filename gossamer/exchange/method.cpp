#include "gossamer/exchange/method.h"

#include <algorithm>

#include "gossamer/base/errors.h"
#include "gossamer/graph/algebra.h"
#include "gossamer/graph/those_left.h"

namespace gossamer {
namespace {

void check_options(const MethodSpec& method, const PatternFacts& pattern) {
  for (const PatternOption& option : method.options) {
    if (std::ranges::find(pattern.options, option.name) != pattern.options.end()) continue;
    std::string valid;
    for (const std::string_view name : pattern.options) {
      valid += (valid.empty() ? "it has " : ", ") + std::string(name);
    }
    fail_argument({.place = "method",
                   .what = "pattern " + std::string(pattern.name) + " has no number of this name",
                   .got = option.name,
                   .remedy = valid.empty() ? "leave it out" : valid});
  }
}

bool is_symmetric(const Schedule& schedule) {
  for (std::int64_t t = 0; t < rounds_looked_at(schedule); ++t) {
    if (!is_symmetric(round_at(schedule, t))) return false;
  }
  return true;
}

void check_lost(std::string_view place, const PatternFacts& pattern, const Schedule& schedule,
                Late late) {
  const auto refuse = [&](const std::string& what, const std::string& got,
                          const std::string& remedy) {
    fail_argument({.place = place, .what = what, .got = got, .remedy = remedy});
  };
  if (averages_gradients(pattern)) return;  // over all, whatever the schedule
  if (schedule.loss_driven) {
    refuse("lost = \"go_on\" has no loss of all workers that a schedule could follow",
           schedule.name, "use global_average_every, or lost = \"error\"");
  }
  // Rounds are formed anew, by a census or as all settle, or what those who are left hear is
  // weighed.
  const bool forms_anew = late == Late::wait && schedule.on != nullptr;
  if (!forms_anew && !pattern.weighs && !is_symmetric(schedule)) {
    refuse(
        "lost = \"go_on\" with late = \"skip\", or with matrices of one's own, needs symmetric W, "
        "which stays doubly stochastic without a worker",
        schedule.name,
        "use late = \"wait\" and a topology by its name, or an undirected one such as ring, or "
        "lost = \"error\"");
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
  const int outer_every[] = {static_cast<int>(option_of(method, "outer_every", 0))};
  check_conditions(pattern, schedule, outer_every);
  return schedule;
}

DeviceCopies device_copies(const PatternFacts& pattern, Late late) {
  const bool skips = late == Late::skip && pattern.device_copies == DeviceCopies::corrections;
  return skips ? DeviceCopies::parameters : pattern.device_copies;
}

PlanOptions plan_options(const PatternFacts& pattern, GroupMethod group_method, Codec codec,
                         Late late) {
  return {.group_method = group_method,
          .finished_averages = pattern.rounds == Rounds::complete,
          .separate_neighbours = late == Late::skip,
          .codec = pattern.is_ddp ? Codec::fp32 : codec};
}

PlanOptions plan_options(const MethodSpec& method) {
  return plan_options(facts_of(method), group_method_of(method), method.codec, method.late);
}

void check_choices(std::string_view place, const PatternFacts& pattern, const Schedule& schedule,
                   const Choices& choices) {
  const auto refuse = [&](const std::string& what, const std::string& got,
                          const std::string& remedy = {}) {
    fail_argument({.place = std::string(place), .what = what, .got = got, .remedy = remedy});
  };
  if (choices.late == Late::skip && !may_skip_late(pattern)) {
    refuse("late = \"skip\" needs payloads that are sent a step ahead",
           "pattern " + std::string(pattern.name), "use pattern cwa, or late = \"wait\"");
  }
  if (choices.late == Late::skip && schedule.period == 0) {
    refuse("late = \"skip\" needs a schedule with a period", schedule.name,
           "choose another topology, or late = \"wait\"");
  }
  if (choices.lost == Lost::go_on) check_lost(place, pattern, schedule, choices.late);
  const std::string codec = "codec " + std::string(name_of(choices.codec));
  const bool is_hook = pattern.is_ddp && choices.codec == Codec::bf16;
  if (choices.codec != Codec::fp32 && choices.group_method != GroupMethod::hierarchical &&
      !is_hook) {
    refuse("a codec needs the hierarchical group method", codec + " with another one",
           "leave group_method as it is, or codec at fp32");
  }
  const bool is_weighted = pattern.weighs && schedule.stochasticity != Stochasticity::doubly;
  if (choices.codec != Codec::fp32 && is_weighted) {
    refuse("a codec preserves the mean with doubly stochastic W only",
           codec + " with " + schedule.name, "choose another topology, or codec fp32");
  }
  if (choices.update == UpdateAt::backward && schedule.loss_driven) {
    refuse("a schedule driven by the loss needs update = \"step\"",
           "update = \"backward\" with " + schedule.name);
  }
}

void check_method(const MethodSpec& method, const HostShape& shape) {
  const PatternFacts& pattern = facts_of(method);
  check_options(method, pattern);
  check_choices("method", pattern, schedule_of(method, shape),
                {.group_method = group_method_of(method),
                 .codec = method.codec,
                 .update = update_of(method),
                 .late = method.late});
}

}  // namespace gossamer
