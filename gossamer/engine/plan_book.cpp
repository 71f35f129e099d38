#include "gossamer/engine/plan_book.h"

#include <algorithm>
#include <stdexcept>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/index.h"
#include "gossamer/graph/algebra.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/push_sum.h"
#include "gossamer/graph/those_left.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

/// Of the topology, without the pattern's weights.
Schedule topology_of_those(const EngineOptions& options, const Seating& seating) {
  const Schedule& all = options.schedule;
  if (seating.workers() == all.shape.workers()) return all;
  const Pattern& pattern = find_pattern(options.pattern);
  if (all.on) {
    try {
      Schedule anew = all.on(seating.shape);
      if (unmet_condition(pattern, anew, {}) == Condition::none) return anew;
    } catch (const std::invalid_argument&) {  // so many it cannot serve
    }
  }
  std::vector<int> positions;
  for (int k = 0; k < seating.workers(); ++k) positions.push_back(seating.rank_at(k));
  Schedule left = among(all, std::move(positions), seating.shape);
  if (is_connected(left) && unmet_condition(pattern, left, {}) == Condition::none) return left;
  return lazy(make_topology("ring", {.shape = seating.shape}));  // serves all sizes and patterns
}

}  // namespace

Schedule schedule_of(const EngineOptions& options) {
  const Pattern& pattern = find_pattern(options.pattern);
  Schedule schedule = options.schedule;
  if (pattern.rounds == Rounds::complete) schedule = complete_schedule(schedule.shape);
  return pattern.weighs ? push_sum_rounds(std::move(schedule)) : schedule;
}

Schedule schedule_of_those(const EngineOptions& options, const Seating& seating,
                           std::int64_t first) {
  const Pattern& pattern = find_pattern(options.pattern);
  if (seating.workers() == 1) return alone_schedule(seating.shape);
  if (pattern.rounds == Rounds::complete) return complete_schedule(seating.shape);
  Schedule schedule = topology_of_those(options, seating);
  return pattern.weighs ? push_sum_rounds(std::move(schedule), first) : schedule;
}

PlanBook::PlanBook(const EngineOptions& options, Seating seating)
    : schedule_(schedule_of(options)),
      plan_options_(plan_options(options)),
      seating_(std::move(seating)),
      staggers_(options.stagger && !schedule_.loss_driven) {}

bool PlanBook::reseat(const EngineOptions& options, const Seating& seating, std::int64_t first) {
  if (have_same_ranks(seating, seating_)) return false;
  seating_ = seating;
  schedule_ = schedule_of_those(options, seating, first);
  plans_.clear();
  return true;
}

bool PlanBook::has_edges() const {
  if (schedule_.period == 0) return schedule_.shape.workers() > 1;
  for (std::int64_t t = 0; t < schedule_.period; ++t) {
    const Round round = round_at(schedule_, t, losses_);
    const auto is_shared = [](const auto& members) { return members.size() > 1; };
    if (std::ranges::any_of(round.groups, is_shared)) return true;
    if (std::ranges::any_of(round.rows, is_shared)) return true;
  }
  return false;
}

std::int64_t PlanBook::round_of(int bucket, std::int64_t every, std::int64_t step) const {
  return step / every + (staggers_ ? bucket : 0);
}

std::shared_ptr<const Plan> PlanBook::make(const Round& round, std::int64_t count) const {
  return std::make_shared<const Plan>(compile(round, seating_, count, plan_options_));
}

std::shared_ptr<const Plan> PlanBook::plan_for(std::int64_t round, std::int64_t count) {
  if (schedule_.period == 0) return make(round_at(schedule_, round, losses_), count);
  auto& kept = plans_[{round % schedule_.period, count}];
  if (!kept) kept = make(round_at(schedule_, round, losses_), count);
  return kept;
}

std::shared_ptr<const Plan> PlanBook::plan_in_step(int bucket, std::int64_t every,
                                                   std::int64_t step, std::int64_t count) {
  if ((step + 1) % every == 0) return plan_for(round_of(bucket, every, step), count);
  auto& kept = plans_[{kRests, count}];
  if (!kept) kept = make(identity_round(seating_.workers()), count);
  return kept;
}

std::vector<const Plan*> PlanBook::plans_for(std::int64_t count) {
  std::vector<const Plan*> plans;
  for (std::int64_t t = 0; t < schedule_.period; ++t) plans.push_back(plan_for(t, count).get());
  return plans;
}

double PlanBook::weight_in(std::int64_t round) const {
  return schedule_.weights ? schedule_.weights(round)[at(seating_.position)] : 1;
}

void PlanBook::agree_on_loss(Collectives& collectives, std::int64_t step, double loss) {
  const bool first = step == 0;
  if (!first && !is_global_average(round_at(schedule_, step, losses_))) return;
  collectives.mean({&loss, 1});
  losses_.push_back({first ? 0 : step + 1, loss});
}

}  // namespace gossamer
