#include "gossamer/sim/method.h"

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

std::string words(const HostShape& shape) {
  std::string text = std::to_string(shape.hosts()) + " hosts with";
  for (int workers : shape.workers_per_host) text += " " + std::to_string(workers);
  return text;
}

}  // namespace

SimMethod sim_method(const MethodSpec& method, const HostShape& shape) {
  check_method(method, shape);
  return {.schedule = schedule_of(method, shape),
          .pattern = &facts_of(method),
          .update = update_of(method),
          .group_method = group_method_of(method),
          .codec = facts_of(method).is_ddp ? Codec::fp32 : method.codec,
          .stagger = method.stagger,
          .late = method.late,
          .staleness = method.staleness};
}

PlanOptions plan_options(const SimMethod& method) {
  return plan_options(*method.pattern, method.group_method, method.codec, method.late);
}

void check_method(const SimMethod& method, const HostShape& shape) {
  check_choices("sim", *method.pattern, method.schedule,
                {.group_method = method.group_method,
                 .codec = method.codec,
                 .update = method.update,
                 .late = method.late});
  if (method.pattern->rounds == Rounds::complete) return;
  if (method.schedule.shape.workers_per_host != shape.workers_per_host) {
    fail_argument({.place = "sim",
                   .what = "the schedule must be for the cluster's " + words(shape),
                   .got = words(method.schedule.shape)});
  }
  if (method.schedule.loss_driven) {
    fail_argument({.place = "sim",
                   .what = "a schedule that is driven by the loss cannot be simulated",
                   .got = method.schedule.name,
                   .remedy = "take a global average every H steps instead"});
  }
}

}  // namespace gossamer
