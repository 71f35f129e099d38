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
  copy,      ///< of the parameters, taken when it leaves into the pattern's first state vector
  own,       ///< the pattern's first state vector
  momentum,  ///< the optimizer's first state vector
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

/// One pattern. `prepare` (may be null) runs once the gradient is there and before
/// after_local_update payloads leave; `combine` runs when the payloads of the others have come.
/// Both return the distance that the pass measured.
struct Pattern {
  template <class T>
  using Pass = double (*)(const PassArgs<T>& args, const Optimizer& optimizer);

  std::string_view name;
  std::string_view summary;
  Launch launch;
  Rounds rounds;
  std::span<const Payload> payloads;
  std::span<const std::string_view> state;  ///< names of its own state vectors, zero at the start
  /// Names of the optimizers that it goes with; empty: all of them.
  std::span<const std::string_view> optimizers = {};
  bool is_static = false;  ///< converges with one symmetric W for all steps only
  double above = -1;       ///< where it is static: all eigenvalues of W must be above this
  /// The row that does the same for parameters that something else steps before each update, with
  /// optimizer "none"; empty: there is none. One that is only that is not a choice of its own.
  std::string_view own_step = {};
  /// Names of the fields of Hyper that it reads beside the optimizer's.
  std::span<const std::string_view> options = {};
  Pass<float> prepare_f32;
  Pass<double> prepare_f64;
  Pass<float> combine_f32;
  Pass<double> combine_f64;

  template <class T>
  Pass<T> prepare() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return prepare_f32;
    } else {
      return prepare_f64;
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
  optimizer,         ///< the optimizer is one that it goes with
  static_symmetric,  ///< one symmetric W for all steps
  eigenvalues,       ///< all eigenvalues of W are above Pattern::above
};

/// The first condition of the pattern that is not met.
Condition unmet_condition(const Pattern& pattern, std::string_view optimizer,
                          const Schedule& schedule);

/// Throws std::invalid_argument where the pattern does not go with the optimizer, or would not
/// converge with the schedule; names what to do.
void check_pattern(const Pattern& pattern, std::string_view optimizer, const Schedule& schedule);

}  // namespace gossamer
