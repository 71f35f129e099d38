#include "gossamer/engine/options.h"

#include "gossamer/algo/pattern.h"
#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

void check_late(const EngineOptions& options, const Pattern& pattern) {
  if (!may_skip_late(pattern)) {
    fail_argument({.place = "engine",
                   .what = "late = \"skip\" needs payloads that are sent a step ahead",
                   .got = "pattern " + std::string(pattern.name),
                   .remedy = "use pattern cwa, or late = \"wait\""});
  }
  if (options.schedule.period == 0) {
    fail_argument({.place = "engine",
                   .what = "late = \"skip\" needs a schedule with a period",
                   .got = options.schedule.name,
                   .remedy = "choose another topology, or late = \"wait\""});
  }
  if (options.staleness < 0) {
    fail_argument({.place = "engine",
                   .what = "staleness must be 0 or more steps",
                   .got = std::to_string(options.staleness)});
  }
}

}  // namespace

PlanOptions plan_options(const EngineOptions& options) {
  return plan_options(find_pattern(options.pattern), options.group_method, options.codec,
                      options.late);
}

void check_options(const EngineOptions& options) {
  const Pattern& pattern = find_pattern(options.pattern);
  for (const Hyper& hyper : options.groups) check_hyper(hyper);
  check_pattern(pattern, options.optimizer, options.schedule, options.groups);
  if (options.late == Late::skip) check_late(options, pattern);
  if (options.codec != Codec::fp32 && options.group_method != GroupMethod::hierarchical) {
    fail_argument({.place = "engine",
                   .what = "a codec needs the hierarchical group method",
                   .got = "codec " + std::string(name_of(options.codec)) + " with another one",
                   .remedy = "leave group_method as it is, or codec at fp32"});
  }
  const bool is_weighted =
      pattern.weighs && options.schedule.stochasticity != Stochasticity::doubly;
  if (options.codec != Codec::fp32 && is_weighted) {
    fail_argument(
        {.place = "engine",
         .what = "a codec preserves the mean with doubly stochastic W only",
         .got = "codec " + std::string(name_of(options.codec)) + " with " + options.schedule.name,
         .remedy = "choose another topology, or codec fp32"});
  }
  const bool in_backward = options.update == UpdateAt::backward;
  const bool needs_whole_gradient = in_backward && options.clip_norm > 0;
  if (needs_whole_gradient && pattern.launch != Launch::before_update) {
    fail_argument({.place = "engine",
                   .what = "clip_norm needs the whole gradient, but update = \"backward\" steps "
                           "bucket by bucket",
                   .got = "clip_norm = " + std::to_string(options.clip_norm),
                   .remedy = "use update = \"step\", or clip_norm = 0"});
  }
  if (in_backward && options.schedule.loss_driven) {
    fail_argument({.place = "engine",
                   .what = "a schedule driven by the loss needs update = \"step\"",
                   .got = "update = \"backward\" with " + options.schedule.name});
  }
}

}  // namespace gossamer
