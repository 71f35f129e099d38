#pragma once
/// A Schedule: which Round is used at which step.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gossamer/base/cluster.h"
#include "gossamer/graph/round.h"

namespace gossamer {

/// A loss that all workers agree on, because it was averaged over all of them after `step` steps.
struct AgreedLoss {
  std::int64_t step = 0;
  double loss = 0;
};

/// t → Round, a plain value. `round(t, losses)` must be pure: equal arguments, equal Round, on
/// every worker. `losses` is empty unless the schedule is driven by the loss.
struct Schedule {
  std::string name;
  HostShape shape;
  int period = 1;            ///< rounds of the topology, which then repeat; 0: they never do
  bool loss_driven = false;  ///< wants AgreedLoss entries, one from every global average
  Stochasticity stochasticity = Stochasticity::doubly;
  std::function<Round(std::int64_t t, std::span<const AgreedLoss> losses)> round;
  /// What each worker's parameters before round t count in the conserved mean, summing to the
  /// number of workers; null: all 1. See push_sum_rounds().
  std::function<std::vector<double>(std::int64_t t)> weights = nullptr;
  /// The same for other hosts; std::invalid_argument for those that it cannot serve. Null: its
  /// rounds were given one by one.
  std::function<Schedule(const HostShape& shape)> on = nullptr;
};

/// The rounds in turn; throws std::invalid_argument if one of them is not as stochastic as declared
/// or is for another number of workers.
Schedule periodic_schedule(std::string name, HostShape shape, std::vector<Round> rounds,
                           Stochasticity stochasticity = Stochasticity::doubly);

/// Nobody talks to anybody: W = I in every step.
Schedule alone_schedule(const HostShape& shape);
/// Whether a schedule is like that one, whatever its name.
bool is_alone(const Schedule& schedule);

/// Everybody averages with everybody in every step.
Schedule complete_schedule(const HostShape& shape);

/// The round at step t ≥ 0 (t modulo the period where there is one).
Round round_at(const Schedule& schedule, std::int64_t t, std::span<const AgreedLoss> losses = {});

}  // namespace gossamer
