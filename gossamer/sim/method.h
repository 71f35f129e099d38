#pragma once
/// What a simulated run does: a method on given hosts.

#include <cstdint>

#include "gossamer/exchange/method.h"

namespace gossamer {

/// A MethodSpec whose choices are made and whose schedule is there.
struct SimMethod {
  Schedule schedule;
  const PatternFacts* pattern = &find_pattern_facts("cwa");
  UpdateAt update = UpdateAt::step;
  GroupMethod group_method = GroupMethod::hierarchical;
  Codec codec = Codec::fp32;  ///< between hosts
  bool stagger = true;        ///< bucket b follows the schedule at t + b
  Late late = Late::wait;
  std::int64_t staleness = 1;
};

/// Throws std::invalid_argument for what does not go together on these hosts.
SimMethod sim_method(const MethodSpec& method, const HostShape& shape);

/// How the method's rounds are compiled.
PlanOptions plan_options(const SimMethod& method);

/// Throws std::invalid_argument for what the engine could not run on hosts of this shape either,
/// and for schedules that are driven by the loss: there is no loss here.
void check_method(const SimMethod& method, const HostShape& shape);

}  // namespace gossamer
