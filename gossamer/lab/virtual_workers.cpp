#include "gossamer/lab/virtual_workers.h"

#include <algorithm>

#include "gossamer/base/errors.h"
#include "gossamer/graph/push_sum.h"

namespace gossamer {
namespace {

/// Replaces each worker's row by the mean over its group.
void average(const std::vector<std::vector<int>>& groups, std::size_t d, std::vector<double>& v) {
  std::vector<double> mean(d);
  for (const std::vector<int>& group : groups) {
    std::ranges::fill(mean, 0);
    for (int i : group) {
      const double* row = v.data() + static_cast<std::size_t>(i) * d;
      for (std::size_t k = 0; k < d; ++k) mean[k] += row[k];
    }
    for (double& value : mean) value /= static_cast<double>(group.size());
    for (int i : group) std::ranges::copy(mean, v.data() + static_cast<std::size_t>(i) * d);
  }
}

/// Whether the pattern is right with any doubly stochastic W of any step.
bool takes_any_round(const Pattern& pattern) {
  return pattern.rounds == Rounds::schedule && !pattern.is_static && !pattern.weighs &&
         pattern.outer != Outer::global_average;
}

void check_own_round(const Pattern& pattern, const Schedule& schedule, const Round& own) {
  if (!takes_any_round(pattern)) {
    fail_argument({.place = "lab",
                   .what = "pattern " + std::string(pattern.name) +
                           " needs all its rounds to be those of the topology",
                   .got = "a matrix for one step",
                   .remedy = "use pattern cwa, atc, dmsgd or gradient_tracking"});
  }
  if (schedule.loss_driven) {
    fail_argument({.place = "lab",
                   .what = "topology " + schedule.name + " chooses its rounds by the loss",
                   .got = "a matrix for one step",
                   .remedy = "use another topology"});
  }
  if (own.workers != schedule.shape.workers()) {
    fail_argument(
        {.place = "lab",
         .what = "W must be for the " + std::to_string(schedule.shape.workers()) + " workers",
         .got = std::to_string(own.workers)});
  }
  check_stochastic(own, Stochasticity::doubly);
}

}  // namespace

VirtualWorkers::VirtualWorkers(Schedule schedule, const std::string& pattern,
                               const std::string& optimizer, int dimension, const Hyper& hyper)
    : schedule_(std::move(schedule)),
      pattern_(find_pattern(pattern)),
      optimizer_(find_optimizer(optimizer)),
      dimension_(dimension),
      d_(static_cast<std::size_t>(dimension)) {
  check_pattern(pattern_, optimizer, schedule_, {&hyper, 1});
  if (pattern_.rounds == Rounds::complete) schedule_ = complete_schedule(schedule_.shape);
  if (pattern_.weighs) schedule_ = push_sum_rounds(std::move(schedule_));
  const std::size_t size = static_cast<std::size_t>(workers()) * d_;
  x_.resize(size);
  g_.resize(size);
  if (pattern_.only_mixes) sent_[0].resize(size);
  optimizer_state_.assign(optimizer_.state.size(), std::vector<double>(size));
  pattern_state_.assign(pattern_.state.size(), std::vector<double>(size));
}

void VirtualWorkers::start() {
  for (std::size_t k = 0; k < pattern_.anchors; ++k) pattern_state_[k] = x_;
}

std::vector<double> VirtualWorkers::mean() const {
  std::vector<double> sum(d_);
  const std::vector<double> weights =
      schedule_.weights ? schedule_.weights(step_) : std::vector<double>();
  for (std::size_t k = 0; k < x_.size(); ++k) {
    sum[k % d_] += weights.empty() ? x_[k] : weights[k / d_] * x_[k];
  }
  for (double& value : sum) value /= workers();
  return sum;
}

bool VirtualWorkers::wants_loss() const {
  return schedule_.loss_driven && (step_ == 0 || is_global_average(round()));
}

void VirtualWorkers::agree_on(double loss) {
  losses_.push_back({step_ == 0 ? 0 : step_ + 1, loss});
}

VirtualWorkers::Mixing VirtualWorkers::make_mixing(const Round& round) const {
  if (!is_partition(round)) return {{}, stretches_of(round)};
  // The groups' means are finished before the pass.
  return {round.groups, {{0, workers(), 0, {{0, 1}}}}};
}

const VirtualWorkers::Mixing& VirtualWorkers::mixing() {
  if (schedule_.period == 0 || schedule_.loss_driven) return fresh_ = make_mixing(round());
  const auto place = static_cast<std::size_t>(step_ % schedule_.period);
  if (place == known_.size()) known_.push_back(make_mixing(round()));
  return known_[place];
}

std::span<const double> VirtualWorkers::payload(Payload payload) const {
  switch (payload) {
    case Payload::parameters:
      return x_;
    case Payload::gradients:
      return g_;
    case Payload::own:
      return pattern_state_[0];
    case Payload::momentum:
      return optimizer_state_[0];
    case Payload::second:
      return optimizer_state_[1];
  }
  assertion_failed("a known payload", __FILE__, __LINE__);
}

void VirtualWorkers::send(const Mixing& mixing, std::span<const Payload> payloads) {
  for (std::size_t k = 0; k < payloads.size(); ++k) {
    if (trades_) {
      sent_[k].swap(x_);
    } else {
      const std::span<const double> from = payload(payloads[k]);
      sent_[k].assign(from.begin(), from.end());
    }
    if (!mixing.groups.empty()) average(mixing.groups, d_, sent_[k]);
  }
}

PassArgs<double> VirtualWorkers::args(const Stretch& stretch, const StepNumbers& numbers,
                                      std::size_t payloads) {
  const std::size_t begin = static_cast<std::size_t>(stretch.begin) * d_;
  const std::size_t count = static_cast<std::size_t>(stretch.end - stretch.begin) * d_;
  PassArgs<double> all{
      .x = {x_.data() + begin, count}, .g = {g_.data() + begin, count}, .numbers = numbers};
  for (std::size_t k = 0; k < optimizer_state_.size(); ++k) {
    all.optimizer_state[k] = {optimizer_state_[k].data() + begin, count};
  }
  for (std::size_t k = 0; k < pattern_state_.size(); ++k) {
    all.pattern_state[k] = {pattern_state_[k].data() + begin, count};
  }
  for (std::size_t k = 0; k < payloads; ++k) {
    sources_[k].clear();
    const double* const own = sent_[k].data() + begin;
    if (trades_) sources_[k].push_back({own, stretch.self_weight});
    for (const Stretch::Term& term : stretch.terms) {
      const double* from = own + static_cast<std::ptrdiff_t>(d_) * term.distance;
      sources_[k].push_back({from, term.weight});
    }
    all.mixes[k] = {trades_ ? 0 : stretch.self_weight, sources_[k]};
  }
  return all;
}

/// Where the workers' weights differ, they are swept one by one.
void VirtualWorkers::sweep(Pattern::Pass<double> pass, std::span<const Stretch> stretches,
                           StepNumbers numbers, std::size_t payloads) {
  for (const Stretch& stretch : stretches) {
    if (weights_.empty()) {
      pass(args(stretch, numbers, payloads), optimizer_);
      continue;
    }
    Stretch own = stretch;
    for (own.begin = stretch.begin; own.begin < stretch.end; ++own.begin) {
      own.end = own.begin + 1;
      numbers.weight = weights_[static_cast<std::size_t>(own.begin)];
      pass(args(own, numbers, payloads), optimizer_);
    }
  }
}

void VirtualWorkers::step(const Hyper& hyper) { advance(hyper, mixing()); }

void VirtualWorkers::step(const Hyper& hyper, const Round& own) {
  check_own_round(pattern_, schedule_, own);
  fresh_ = make_mixing(own);
  advance(hyper, fresh_);
}

void VirtualWorkers::advance(const Hyper& hyper, const Mixing& now) {
  if (schedule_.weights) weights_ = schedule_.weights(step_);
  const StepNumbers numbers{.hyper = hyper, .t = step_ + 1, .round = step_};
  const Stretch everybody{0, workers(), 1, {}};
  trades_ = false;
  const auto prepare = pattern_.passes<double>().prepare;
  if (prepare != nullptr) sweep(prepare, {&everybody, 1}, numbers, 0);
  for (int stage = 0; stage < pattern_.stages(); ++stage) {
    const std::span<const Payload> payloads = pattern_.payloads_of(stage);
    const bool is_last = stage + 1 == pattern_.stages();
    trades_ = is_last && pattern_.only_mixes;
    send(now, payloads);
    sweep(is_last ? pattern_.passes<double>().combine : pattern_.passes<double>().middle,
          now.stretches, numbers, payloads.size());
  }
  ++step_;
}

}  // namespace gossamer
