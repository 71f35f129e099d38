#pragma once
/// The table of patterns with their passes: how a worker combines what arrives.

#include <span>
#include <string_view>

#include "gossamer/algo/optimizer.h"
#include "gossamer/algo/pass.h"
#include "gossamer/exchange/pattern_facts.h"
#include "gossamer/graph/schedule.h"

namespace gossamer {

/// What a pattern computes. `prepare` (may be null) runs once the gradient is there and before
/// after_local_update payloads leave; `middle` between two stages; `combine` when the payloads of
/// the others have come. All passes return the distance that they measured.
template <class T>
struct Passes {
  using Pass = double (*)(const PassArgs<T>& args, const Optimizer& optimizer);

  std::string_view name;
  Pass prepare = nullptr;
  Pass middle = nullptr;
  Pass combine = nullptr;
};

/// A pattern with its passes.
struct Pattern : PatternFacts {
  template <class T>
  using Pass = typename Passes<T>::Pass;

  Passes<float> f32;
  Passes<double> f64;

  template <class T>
  const Passes<T>& passes() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return f32;
    } else {
      return f64;
    }
  }
};

std::span<const Pattern> patterns();

/// Throws std::invalid_argument that lists the valid names.
const Pattern& find_pattern(std::string_view name);

/// The first condition of the pattern that is not met.
Condition unmet_condition(const Pattern& pattern, std::string_view optimizer,
                          const Schedule& schedule, std::span<const Hyper> groups);

/// Throws std::invalid_argument where the pattern does not go with the optimizer, or would not
/// converge with the schedule or the groups' outer steps; names what to do.
void check_pattern(const Pattern& pattern, std::string_view optimizer, const Schedule& schedule,
                   std::span<const Hyper> groups);

}  // namespace gossamer
