#include "gossamer/engine/options.h"

#include "gossamer/algo/pattern.h"
#include "gossamer/base/errors.h"

namespace gossamer {

PlanOptions plan_options(const EngineOptions& options) {
  return plan_options(find_pattern(options.pattern), options.group_method, options.codec,
                      options.late);
}

void check_options(const EngineOptions& options) {
  const Pattern& pattern = find_pattern(options.pattern);
  for (const Hyper& hyper : options.groups) check_hyper(hyper);
  check_pattern(pattern, options.optimizer, options.schedule, options.groups);
  check_choices("engine", pattern, options.schedule,
                {.group_method = options.group_method,
                 .codec = options.codec,
                 .update = options.update,
                 .late = options.late,
                 .lost = options.lost});
  if (options.late == Late::skip && options.staleness < 0) {
    fail_argument({.place = "engine",
                   .what = "staleness must be 0 or more steps",
                   .got = std::to_string(options.staleness)});
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
}

}  // namespace gossamer
