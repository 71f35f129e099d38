#pragma once
/// The table of patterns: what a worker sends, when, and how it combines what arrives.

#include <span>
#include <string_view>

#include "gossamer/algo/optimizer.h"
#include "gossamer/algo/pass.h"
#include "gossamer/graph/schedule.h"

namespace gossamer {

/// A vector that a pattern sends.
enum class Payload {
  parameters,
  gradients,
  own,       ///< the pattern's first state vector
  momentum,  ///< the optimizer's first state vector
  second,    ///< the optimizer's second state vector: Adam's second moment
};

/// When the payloads of update t leave.
enum class Launch {
  after_previous_update,  ///< they travel during the whole forward and backward (cwa)
  before_update,          ///< as soon as the gradient is there; the update needs them (allreduce)
  after_local_update,     ///< after `prepare`, on the critical path (atc)
};

/// Which rounds a pattern follows.
enum class Rounds {
  schedule,  ///< those of the run's topology
  complete,  ///< the finished average over all workers, whatever the topology
};

/// When a pattern makes the outer steps that Hyper::outer_every asks for.
enum class Outer {
  never,
  any_round,
  global_average,  ///< in rounds that average over all workers only
};

/// One pattern. `prepare` (may be null) runs once the gradient is there and before
/// after_local_update payloads leave; `combine` runs when the payloads of the others have come.
/// All passes return the distance that they measured.
///
/// Note [Two stages]: where `then` has payloads, two exchanges follow each other within a step, by
/// the same round. When the first has come and the gradient is there, `middle` runs, with its
/// mixes; then the payloads of `then` leave, and `combine` gets theirs. Not with before_update.
struct Pattern {
  template <class T>
  using Pass = double (*)(const PassArgs<T>& args, const Optimizer& optimizer);

  std::string_view name;
  std::string_view summary;
  Launch launch;
  Rounds rounds;
  std::span<const Payload> payloads;
  std::span<const Payload> then = {};  ///< those of the second stage
  /// Names of its own state vectors. The first `anchors` of them start as the parameters, the
  /// others as 0.
  std::span<const std::string_view> state;
  std::size_t anchors = 0;
  /// Names of the optimizers that it goes with; empty: all of them.
  std::span<const std::string_view> optimizers = {};
  bool is_static = false;  ///< converges with one symmetric W for all steps only
  double above = -1;       ///< where it is static: all eigenvalues of W must be above this
  /// Whether it goes with optimizer "none" on parameters that something else has stepped before.
  bool own_step = false;
  /// Names of the fields of Hyper that it reads beside the optimizer's.
  std::span<const std::string_view> options = {};
  bool only_mixes = false;  ///< `combine` puts the mix in the place of x and does nothing else
  bool weighs = false;      ///< follows push_sum_rounds() of the schedule, so columns may sum to 1
  Outer outer = Outer::never;
  Pass<float> prepare_f32;
  Pass<double> prepare_f64;
  Pass<float> middle_f32 = nullptr;
  Pass<double> middle_f64 = nullptr;
  Pass<float> combine_f32;
  Pass<double> combine_f64;

  int stages() const { return then.empty() ? 1 : 2; }
  std::span<const Payload> payloads_of(int stage) const { return stage == 0 ? payloads : then; }
  template <class T>
  Pass<T> prepare() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return prepare_f32;
    } else {
      return prepare_f64;
    }
  }
  template <class T>
  Pass<T> middle() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return middle_f32;
    } else {
      return middle_f64;
    }
  }
  template <class T>
  Pass<T> combine() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return combine_f32;
    } else {
      return combine_f64;
    }
  }
};

std::span<const Pattern> patterns();

/// Throws std::invalid_argument that lists the valid names.
const Pattern& find_pattern(std::string_view name);

/// A condition of a pattern.
enum class Condition {
  none,
  optimizer,          ///< the optimizer is one that it goes with
  doubly_stochastic,  ///< all rounds are, or sum up by columns where the pattern weighs
  static_symmetric,   ///< one symmetric W for all steps
  eigenvalues,        ///< all eigenvalues of W are above Pattern::above
  outer_steps,        ///< every group's outer_every is 1 or more
  global_averages,    ///< rounds of outer steps average over all workers
};

/// The first condition of the pattern that is not met.
Condition unmet_condition(const Pattern& pattern, std::string_view optimizer,
                          const Schedule& schedule, std::span<const Hyper> groups);

/// Throws std::invalid_argument where the pattern does not go with the optimizer, or would not
/// converge with the schedule or the groups' outer steps; names what to do.
void check_pattern(const Pattern& pattern, std::string_view optimizer, const Schedule& schedule,
                   std::span<const Hyper> groups);

}  // namespace gossamer
