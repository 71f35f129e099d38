#pragma once
/// The Engine: one worker's state machine of buckets, rounds and steps. It never saw a tensor.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gossamer/base/aligned_bytes.h"
#include "gossamer/engine/collectives.h"
#include "gossamer/engine/consensus_average.h"
#include "gossamer/engine/exchange_runner.h"
#include "gossamer/engine/going_on.h"
#include "gossamer/engine/lane.h"
#include "gossamer/engine/options.h"
#include "gossamer/engine/plan_book.h"
#include "gossamer/transport/transport.h"

namespace gossamer {

/// Note [Mix at the step]: x⁺ = W x + d(∇f(x)) takes the gradient at the unmixed x, so what the
/// neighbours send is known one whole step before it is needed. For each bucket, as the exchange
/// ends that the previous step launched (Note [First come, first served]), step() does mix and
/// optimizer in one pass, and launches the exchange of the next round, which runs during the next
/// forward and backward. x does not change while it travels, so nothing is copied to send it.
///
/// All workers must construct engines with the same options and equal bucket sizes, and make the
/// same calls in the same order. One thread drives an engine. Waiting calls throw TransportError
/// when another worker does not do its part within the timeout.
class Engine {
 public:
  /// Throws std::invalid_argument for options that do not fit each other or the transport.
  Engine(EngineOptions options, Transport& transport, std::vector<Bucket> buckets);

  /// Gives every worker rank 0's parameters and starts at step 0.
  void start();
  /// Starts after `step` steps from parameters and state() that have been filled in (resume).
  void start_at(std::int64_t step);
  /// Of a worker that comes back: agrees with the others on the step, and starts after it.
  void start_back(Arrival& arrival);
  /// Before start_at(): lets the pattern's anchors start as the parameters are, where nothing else
  /// was filled in.
  void set_anchors();

  /// The gradient of a bucket is complete. With UpdateAt::backward the bucket steps now (or its
  /// gradient leaves now); otherwise nothing happens. Each bucket at most once per step.
  void gradient_ready(int bucket);
  /// Finishes the step: afterwards all parameters are updated. `loss` is this worker's loss, needed
  /// by schedules that are driven by the loss. A non-finite gradient is NonFiniteGradient and
  /// leaves parameters and state as they were, except for buckets that stepped in the backward.
  StepReport step(double loss = 0);

  /// Where payloads lie that are copied to be sent; empty: nowhere.
  std::span<std::byte> outboxes() const { return outbox_memory_.all; }
  /// Before this worker leaves: waits until the others have what it sent in steps that are done.
  void wait_until_given(Deadline deadline) {
    for (const auto& lane : lanes_) {
      if (started_) lane->traffic().wait_until_given(deadline);
    }
  }
  /// Waits until everything under way has left and arrived and no peer reads this worker's memory;
  /// consumes nothing. Collective where buckets have spares.
  void quiesce();
  /// Whether each step() leaves the parameters in the buckets' spares, and those before it in x.
  bool alternates() const { return alternates_; }

  /// Mutable, for learning-rate schedules; read by the next update.
  std::span<Hyper> groups() { return options_.groups; }
  /// Other groups, and other segments of a bucket, from the next update on: where the parameters
  /// that have a gradient, their groups or their gradients' places differ between steps.
  void set_groups(std::vector<Hyper> groups);
  void set_segments(int bucket, std::vector<Segment> segments);
  std::int64_t steps_done() const { return steps_; }
  /// PlanBook::agreed_losses().
  std::vector<AgreedLoss>& agreed_losses() { return plans_.agreed_losses(); }
  /// Parameters and state vectors of all buckets, to be saved, or filled in before start_at().
  std::vector<StateVector> state() const;

  /// Replaces the parameters by their mean over all workers, weighted as the schedule says, keeping
  /// the local ones aside, and returns √(mean_i ‖x_i − x̄‖²) / ‖x̄‖, the disagreement. Collective.
  double load_average();
  /// Brings the local parameters back after load_average().
  void restore_local() { average_.restore(); }
  Collectives& collectives() { return collectives_; }
  /// Whom it goes on without; null where each one is an error.
  LostPeers* lost() { return going_on_ ? &going_on_->lost() : nullptr; }
  /// Whom its rounds are among; this changes between two steps only.
  const Seating& seating() const { return plans_.seating(); }
  /// Where workers that come back are let in; null likewise.
  Admission* admission() { return going_on_ ? &going_on_->admission() : nullptr; }
  /// For exchanges of the layer above, on streams below −1.
  ExchangeRunner& runner() { return runner_; }

 private:
  using Kind = TimelineEvent::Kind;

  /// The step under way.
  struct Step {
    explicit Step(std::size_t buckets) : begun(buckets, 0), finished(buckets, 0) {}

    std::vector<char> begun;     ///< by bucket: gradient checked and, where the pattern wants, sent
    std::vector<char> finished;  ///< by bucket: updated
    double grad_scale = 1;
    double distance_squared = 0;
    double norm_squared = 0;
    std::int64_t skipped = 0;
    std::vector<int> among;    ///< as in StepReport
    bool begins_anew = false;  ///< what the pattern keeps, once the step is done
    Overlap overlap;
  };

  void while_waiting();
  bool takes_census() const;
  void make_traffic();
  bool sends_ahead() const;
  bool sends_at_once() const;
  void launch_all();
  void expect(Lane& lane, std::int64_t exchange);
  void launch(Lane& lane, std::int64_t exchange);
  double checked_norm_squared(Lane& lane) const;
  void limit_gradient();
  void begin_bucket(Lane& lane);
  void finish_stage(Lane& lane);
  void wait(Lane& lane);
  std::size_t first_ready(const std::vector<Lane*>& open);
  void finish_buckets();
  void check_gradients();
  bool settles() const;
  void settle();
  void form_rounds_anew();
  std::int64_t first_round(std::int64_t step) const;  ///< of all buckets, from this step on
  void measure_means();
  StepReport end_step();
  std::int64_t round_of(Lane& lane) const;
  PassNumbers numbers(Lane& lane) const;
  /// What was done since the last call, see Note [Recorded steps].
  void record(Kind kind, int bucket = -1) {
    if (options_.recorder != nullptr) options_.recorder->did(kind, bucket);
  }

  EngineOptions options_;
  const Pattern& pattern_;
  const Optimizer& optimizer_;
  const bool alternates_;
  std::unique_ptr<WorkerPool> pool_;
  OutboxMemory outbox_memory_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::unique_ptr<GoingOn> going_on_;  ///< null: each lost one is an error; the runner looks at it
  ExchangeRunner runner_;
  Collectives collectives_;
  PlanBook plans_;
  ConsensusAverage average_;

  bool started_ = false;
  std::int64_t steps_ = 0;  ///< done
  Step step_;
};

}  // namespace gossamer
