#include "gossamer/graph/schedule_spec.h"

#include <utility>

#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"

namespace gossamer {

Schedule make_schedule(const ScheduleSpec& spec, const HostShape& shape) {
  return modified(make_topology(spec.topology, {.shape = shape,
                                                .seed = spec.seed,
                                                .degree = spec.degree,
                                                .link_rates = spec.link_rates}),
                  spec);
}

Schedule modified(Schedule schedule, const ScheduleSpec& spec) {
  if (spec.lazy) schedule = lazy(std::move(schedule));
  if (spec.rounds_per_step != 1) {
    schedule = with_rounds_per_step(std::move(schedule), spec.rounds_per_step);
  }
  if (spec.local_steps != 1) schedule = with_local_steps(std::move(schedule), spec.local_steps);
  if (spec.global_average != 0) {
    schedule = with_global_average(std::move(schedule), spec.global_average);
  }
  if (spec.adaptive_average != 0) {
    schedule = with_adaptive_global_average(std::move(schedule), spec.adaptive_average);
  }
  return schedule;
}

std::vector<std::string> modifiers_of(const ScheduleSpec& spec) {
  std::vector<std::string> words;
  const auto add = [&](const char* name, int value, int none) {
    if (value != none) words.push_back(std::string(name) + "=" + std::to_string(value));
  };
  if (spec.lazy) words.emplace_back("lazy");
  add("rounds_per_step", spec.rounds_per_step, 1);
  add("local_steps", spec.local_steps, 1);
  add("global_average", spec.global_average, 0);
  add("adaptive_average", spec.adaptive_average, 0);
  return words;
}

}  // namespace gossamer
