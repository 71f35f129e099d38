#pragma once
/// n workers of one process that follow a pattern, in one memory, worker by worker.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gossamer/algo/pattern.h"
#include "gossamer/graph/round.h"
#include "gossamer/graph/schedule.h"
#include "gossamer/lab/stretches.h"

namespace gossamer {

/// Note [Virtual workers]: all workers' vectors lie one after the other, and the passes of the
/// pattern table run over as many workers at once as take from neighbours at the same distances. A
/// pass costs what its memory traffic costs, then, not a call per worker. What a worker sends is
/// copied for all of them before anything is combined; where the mix is all that combine does, the
/// parameters themselves are what was sent, and the mix goes to where the last ones were.
class VirtualWorkers {
 public:
  /// Throws std::invalid_argument where pattern, optimizer, schedule and hyperparameters do not fit
  /// each other. All parameters are 0; who starts elsewhere sets x() and calls start().
  VirtualWorkers(Schedule schedule, const std::string& pattern, const std::string& optimizer,
                 int dimension, const Hyper& hyper);
  /// Lets the pattern's anchors start where the parameters are now.
  void start();

  int workers() const { return schedule_.shape.workers(); }
  int dimension() const { return dimension_; }
  /// n·d numbers, rows are workers: the parameters, and the gradients that step() steps with.
  std::span<double> x() { return x_; }
  std::span<double> g() { return g_; }
  std::int64_t steps_done() const { return step_; }
  /// The mean over the workers that mixing keeps: weighted where the pattern weighs.
  std::vector<double> mean() const;

  void step(const Hyper& hyper);
  /// The same, but mixes with this round in place of the schedule's. Throws std::invalid_argument
  /// for another number of workers, a round that is not doubly stochastic, and for patterns and
  /// schedules that need all rounds to be the schedule's.
  void step(const Hyper& hyper, const Round& own);

  /// Whether the step to come needs a loss that all agree on, as in the engine: before the first
  /// step and with every global average, where the schedule is driven by the loss.
  bool wants_loss() const;
  /// That loss, at the workers' parameters of now.
  void agree_on(double loss);

 private:
  /// A round as it is executed: groups that average, or stretches.
  struct Mixing {
    std::vector<std::vector<int>> groups;
    std::vector<Stretch> stretches;
  };
  Round round() const { return round_at(schedule_, step_, losses_); }
  Mixing make_mixing(const Round& round) const;
  const Mixing& mixing();
  void advance(const Hyper& hyper, const Mixing& mixing);
  std::span<const double> payload(Payload payload) const;
  void send(const Mixing& mixing, std::span<const Payload> payloads);
  PassArgs<double> args(const Stretch& stretch, const StepNumbers& numbers, std::size_t payloads);
  void sweep(Pattern::Pass<double> pass, std::span<const Stretch> stretches, StepNumbers numbers,
             std::size_t payloads);

  Schedule schedule_;
  const Pattern& pattern_;
  std::vector<double> weights_;  ///< by worker, before the step to come; empty: all 1
  const Optimizer& optimizer_;
  int dimension_;
  std::size_t d_;
  /// In this stage sent_[0] is the x_ of before it; what x_ holds then has the weight 0.
  bool trades_ = false;
  std::int64_t step_ = 0;
  std::vector<AgreedLoss> losses_;
  std::vector<double> x_;
  std::vector<double> g_;
  std::vector<std::vector<double>> optimizer_state_;
  std::vector<std::vector<double>> pattern_state_;
  std::array<std::vector<double>, kMaxVectors> sent_;  ///< by payload
  std::array<std::vector<Source<double>>, kMaxVectors> sources_;
  std::vector<Mixing> known_;  ///< by step modulo the period
  Mixing fresh_;               ///< where there is no period
};

}  // namespace gossamer
