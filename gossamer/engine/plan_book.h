#pragma once
/// PlanBook: the rounds that a run follows, as plans of this worker.

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "gossamer/engine/collectives.h"
#include "gossamer/engine/options.h"
#include "gossamer/engine/seating.h"

namespace gossamer {

/// The schedule that buckets follow: the topology's, or the pattern's own.
Schedule schedule_of(const EngineOptions& options);
/// The same for those of its workers that `seating` has: formed anew where the topology serves as
/// many and the pattern may follow it, else what is left of it. Push-sum's weights are 1 before
/// round `first`.
Schedule schedule_of_those(const EngineOptions& options, const Seating& seating,
                           std::int64_t first);

class PlanBook {
 public:
  /// Rounds are those of schedule_of() the options.
  PlanBook(const EngineOptions& options, Seating seating);

  const Schedule& schedule() const { return schedule_; }
  const Seating& seating() const { return seating_; }
  /// Rounds are those of schedule_of_those() from now on; whether others take part than before.
  bool reseat(const EngineOptions& options, const Seating& seating, std::int64_t first);
  /// Whether any round has an edge.
  bool has_edges() const;
  /// The round that bucket number `bucket` follows in a step, or follows next where it rests; see
  /// Note [Staggered buckets] and Note [Buckets that rest].
  std::int64_t round_of(int bucket, std::int64_t every, std::int64_t step) const;
  /// This worker's plan for a step of that bucket, of `count` elements; kept where rounds return.
  std::shared_ptr<const Plan> plan_in_step(int bucket, std::int64_t every, std::int64_t step,
                                           std::int64_t count);
  /// This worker's plan for a round and a payload of `count` elements; kept where rounds return.
  std::shared_ptr<const Plan> plan_for(std::int64_t round, std::int64_t count);
  /// All plans that a payload of `count` elements can meet, of a schedule with a period; they stay.
  std::vector<const Plan*> plans_for(std::int64_t count);
  /// This worker's weight in averages before a round; 1 where all weigh alike.
  double weight_in(std::int64_t round) const;

  /// Losses that a loss-driven schedule has been told so far, part of what a checkpoint keeps.
  std::vector<AgreedLoss>& agreed_losses() { return losses_; }
  /// Tells it the mean over all workers of the loss of a step, where it wants to know: of the first
  /// and of those with a global average. Collective.
  void agree_on_loss(Collectives& collectives, std::int64_t step, double loss);

 private:
  static constexpr std::int64_t kRests = -1;

  std::shared_ptr<const Plan> make(const Round& round, std::int64_t count) const;

  Schedule schedule_;
  const PlanOptions plan_options_;
  Seating seating_;
  const bool staggers_;
  /// By round, or kRests, and number of elements.
  std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<const Plan>> plans_;
  std::vector<AgreedLoss> losses_;
};

}  // namespace gossamer
