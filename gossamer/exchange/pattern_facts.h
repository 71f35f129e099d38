#pragma once
/// The table of patterns without their arithmetic: what a worker sends, and when.

#include <span>
#include <string_view>

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
  after_local_update,     ///< after the local update, on the critical path (atc)
};

/// Which rounds a pattern follows.
enum class Rounds {
  schedule,  ///< those of the run's topology
  complete,  ///< the finished average over all workers, whatever the topology
};

/// When a pattern makes the outer steps that outer_every asks for.
enum class Outer {
  never,
  any_round,
  global_average,  ///< in rounds that average over all workers only
};

/// When buckets step.
enum class UpdateAt {
  step,      ///< all in step(); the backward is left alone
  backward,  ///< each as soon as its gradient is complete
};

/// What crosses between a device that holds the parameters and the host's memory.
enum class DeviceCopies {
  parameters,   ///< out and back within the step, which waits: the mix needs them
  corrections,  ///< parameters out, corrections in, beside the computing
  gradients,    ///< out, and their means in, beside the backward
  none,         ///< payloads leave the device's memory by themselves, as NCCL's do
};

/// One pattern. algo/ adds the passes under the same name.
///
/// Note [Two stages]: where `then` has payloads, two exchanges follow each other within a step, by
/// the same round. When the first has come and the gradient is there, a middle pass runs, with its
/// mixes; then the payloads of `then` leave, and the last pass gets theirs. Not with before_update.
struct PatternFacts {
  std::string_view name;
  std::string_view summary;
  Launch launch = Launch::after_previous_update;
  Rounds rounds = Rounds::schedule;
  std::span<const Payload> payloads;
  std::span<const Payload> then = {};  ///< those of the second stage, as many as of the first
  UpdateAt usual_update = UpdateAt::step;
  /// Names of its own state vectors. The first `anchors` of them start as the parameters, the
  /// others as 0.
  std::span<const std::string_view> state = {};
  std::size_t anchors = 0;
  /// Names of the optimizers that it goes with; empty: all of them.
  std::span<const std::string_view> optimizers = {};
  bool is_static = false;  ///< converges with one symmetric W for all steps only
  double above = -1;       ///< where it is static: all eigenvalues of W must be above this
  /// Whether it goes with optimizer "none" on parameters that something else has stepped before.
  bool own_step = false;
  /// Whether gradients can be averaged before such an optimizer steps. Parameters are then mixed as
  /// in cwa, or not at all where rounds are complete.
  bool averages_first = false;
  DeviceCopies device_copies = DeviceCopies::parameters;
  /// Names of the numbers that it has beside the optimizer's.
  std::span<const std::string_view> options = {};
  bool conserves = false;   ///< a sum of its state over all workers, which is wrong without one
  bool only_mixes = false;  ///< the last pass puts the mix in the place of x and does nothing else
  bool weighs = false;      ///< follows push_sum_rounds() of the schedule, so columns may sum to 1
  Outer outer = Outer::never;
  /// DistributedDataParallel: one bucket's exchange after the other's, and one update at the end.
  bool is_ddp = false;

  int stages() const { return then.empty() ? 1 : 2; }
  std::span<const Payload> payloads_of(int stage) const { return stage == 0 ? payloads : then; }
};

std::span<const PatternFacts> pattern_facts();

/// What gradients are averaged by without Gossamer, to compare with; no row of the table.
const PatternFacts& ddp_facts();

/// Throws std::invalid_argument that lists the valid names.
const PatternFacts& find_pattern_facts(std::string_view name);

/// Whether it averages gradients over all workers in every step, so that nothing but the sums'
/// order tells it from plain data-parallel training.
bool averages_gradients(const PatternFacts& pattern);

/// Whether what is sent is what the next step's forward reads, and nothing else: an update may then
/// go to a second memory while peers read the first.
bool sends_parameters_ahead(const PatternFacts& pattern);

/// Whether an update can go on without neighbours whose payload is late.
bool may_skip_late(const PatternFacts& pattern);

/// Whether those who are left must know in the same step that somebody is lost: means over all are
/// to be made over them, or sums over all begin anew.
bool settles(const PatternFacts& pattern);

/// A condition of a pattern.
enum class Condition {
  none,
  optimizer,          ///< the optimizer is one that it goes with
  doubly_stochastic,  ///< all rounds are, or sum up by columns where the pattern weighs
  static_symmetric,   ///< one symmetric W for all steps
  eigenvalues,        ///< all eigenvalues of W are above `above`
  outer_steps,        ///< every outer_every is 1 or more
  global_averages,    ///< rounds of outer steps average over all workers
};

/// The first condition on the schedule that is not met; `outer_every` by parameter group.
Condition unmet_condition(const PatternFacts& pattern, const Schedule& schedule,
                          std::span<const int> outer_every);

/// Throws std::invalid_argument where one is not met, or where the schedule leaves parts that never
/// mix; names what to do.
void check_conditions(const PatternFacts& pattern, const Schedule& schedule,
                      std::span<const int> outer_every);

}  // namespace gossamer
