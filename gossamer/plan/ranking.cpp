#include "gossamer/plan/ranking.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "gossamer/base/errors.h"
#include "gossamer/base/units.h"
#include "gossamer/graph/topology.h"
#include "gossamer/model/compute_times.h"
#include "gossamer/model/convergence.h"
#include "gossamer/model/device_queues.h"
#include "gossamer/model/link_load.h"
#include "gossamer/plan/forecast.h"
#include "gossamer/plan/ranking_words.h"

namespace gossamer {
namespace {

constexpr int kLocalSteps = 4;
constexpr int kGlobalAverage = 32;
constexpr int kWarmUp = 8;
constexpr int kModelSteps = 24;      // beside the warm-up, and made whole periods
constexpr int kSimulatedSteps = 32;  // the same
constexpr int kFewestSimulatedSteps = 4;
constexpr double kMostMessages = 250'000;  // of a simulation: some tenths of a second
constexpr double kRounding = 1e-9;         // of a step
constexpr double kMayBeFaster = 0.98;      // compute times that are drawn vary from their mean
constexpr int kLongPeriod = 64;            // of longer schedules, and those without a period,
constexpr int kRandomRounds = 4;           // so many rounds stand for all
constexpr double kMayBeLess = 0.7;         // which the others may undercut so far

bool can_serve(const MethodSpec& candidate, const ClusterSpec& cluster) {
  try {
    sim_method(candidate, cluster);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

std::vector<MethodSpec> skipping_candidates(const Workload& workload) {
  if (!has_stragglers(workload)) return {};
  return {parse_method("one_peer_ring:skip=2"), parse_method("ring:skip=2")};
}

class Ranker {
 public:
  Ranker(const ClusterSpec& cluster, const Workload& workload, const Target& target)
      : cluster_(cluster), shape_(cluster.shape()), workload_(workload), target_(target) {
    for (int w = 0; w < shape_.workers(); ++w) {
      for (int t = 0; t < kModelSteps; ++t) {
        least_compute_s_ += compute_s(workload.compute, w, t) / (shape_.workers() * kModelSteps);
      }
    }
    least_compute_s_ -= more_than_mean_s(0, kModelSteps);
    least_compute_s_ *= kMayBeFaster;
  }

  /// What its total cannot be below: every worker computes, and the busiest link carries its bytes.
  double least_total_s(const MethodSpec& candidate) {
    const double ratio =
        steps_ratio(candidate,
                    {shape_.workers(), mixing_of(candidate).rho, 1, averaged_by(candidate)},
                    target_)
            .ratio;
    const double step_s = std::max(least_compute_s_, least_link_s(candidate));
    return static_cast<double>(target_.steps) * ratio * step_s;
  }

  RankedCandidate by_model(const MethodSpec& candidate) {
    RankedCandidate ranked{.candidate = candidate};
    const Schedule& schedule = mixing_of(candidate).schedule;
    MaxPlusOptions options = model_options(candidate);
    options.steps = kWarmUp + whole_periods(candidate, kModelSteps);
    options.warm_up = kWarmUp;
    const ClusterSpec links = links_for(candidate, cluster_, workload_);
    const Workload sent = workload_for(candidate, workload_);
    const StepTimes times = step_times(links, sent, schedule, options);
    ranked.step_s = times.mean_step_s - more_than_mean_s(kWarmUp, std::ssize(times.start_s) - 1);
    ranked.exposed_s = times.exposed_s;
    return with_steps(ranked);
  }

  /// How many steps of a candidate may be simulated; too few make no sense.
  std::int64_t affordable_steps(const MethodSpec& candidate) {
    const auto most =
        static_cast<std::int64_t>(kMostMessages / std::max(1.0, messages_per_step(candidate)));
    return std::min<std::int64_t>(most, kWarmUp + whole_periods(candidate, kSimulatedSteps));
  }

  RankedCandidate by_simulation(const MethodSpec& candidate, std::int64_t steps) {
    RankedCandidate ranked{.candidate = candidate, .is_simulated = true};
    const SimMethod method = sim_method(candidate, cluster_);
    const ClusterSpec links = links_for(candidate, cluster_, workload_);
    const Workload sent = workload_for(candidate, workload_);
    const SimResult result = simulate(links, sent, method, {.steps = steps});
    const std::int64_t warm_up = std::min<std::int64_t>(kWarmUp, steps / 3);
    ranked.step_s = step_of_everybody(result, warm_up) - more_than_mean_s(warm_up, steps);
    ranked.exposed_s = mean_waited_s(result, warm_up);
    if (result.skipped == 0) return with_steps(ranked);
    const double wanted = messages_per_step(candidate) * static_cast<double>(steps);
    return with_steps(ranked, std::max(0.0, 1 - static_cast<double>(result.skipped) / wanted));
  }

 private:
  /// What the compute times that were drawn for these steps are above their mean, which a few steps
  /// do not come near to.
  double more_than_mean_s(std::int64_t from, std::int64_t to) const {
    return drawn_more_s(workload_.compute, shape_.workers(), from, to);
  }

  /// What codecs do not change.
  struct Mixing {
    Schedule schedule;
    double rho = 0;
  };

  /// At least `steps`, as many as make whole periods: a part of one may take much less than the
  /// rest. Of long periods, and without any, just `steps`.
  int whole_periods(const MethodSpec& candidate, int steps) {
    const int period = mixing_of(candidate).schedule.period;
    return period < 1 || period > kLongPeriod ? steps : (steps + period - 1) / period * period;
  }

  double averaged_by(const MethodSpec& candidate) {
    if (candidate.pattern != "gradient_gossip") return 1;
    return averaged_workers(mixing_of(candidate).schedule);
  }

  const Mixing& mixing_of(const MethodSpec& candidate) {
    MethodSpec key = candidate;
    key.codec = Codec::fp32;
    const auto [at, is_new] = mixings_.try_emplace(name_of(key));
    if (is_new) {
      at->second.schedule = sim_method(key, cluster_).schedule;
      MethodSpec plain = key;
      plain.schedule.local_steps = 1;
      plain.schedule.global_average = 0;
      at->second.rho = lasting_rho(sim_method(plain, cluster_).schedule, key.schedule.local_steps,
                                   key.schedule.global_average);
    }
    return at->second;
  }

  /// Of its plain topology in fp32, less what the codec, the local steps and the global average may
  /// leave of it. In `kLookedAt` rounds of every schedule.
  double least_link_s(const MethodSpec& candidate) {
    if (averages_gradients(candidate)) return 0;
    const auto [at, is_new] = link_s_.try_emplace(candidate.schedule.topology);
    if (is_new)
      at->second = busiest_link_s({.schedule = {.topology = candidate.schedule.topology}});
    const double width = static_cast<double>(coded_bytes(candidate.codec, kCodecBlock)) /
                         static_cast<double>(coded_bytes(Codec::fp32, kCodecBlock));
    const double mixes =
        candidate.schedule.global_average > 0 ? 1 - 1.0 / candidate.schedule.global_average : 1;
    return at->second * width * mixes / candidate.schedule.local_steps;
  }

  double busiest_link_s(const MethodSpec& plain) {
    const Schedule& schedule = mixing_of(plain).schedule;
    const bool is_whole = schedule.period >= 1 && schedule.period <= kLongPeriod;
    const int rounds = is_whole ? schedule.period : kRandomRounds;
    const ExchangedPayload payload{.elements = elements_of(workload_),
                                   .dtype = workload_.dtype,
                                   .plan = model_options(plain).plan};
    const double seconds =
        gossamer::busiest_link_s(cluster_, mean_loads(schedule, rounds, payload));
    return seconds * (is_whole ? 1 : kMayBeLess);
  }

  /// Of all workers together; as the first one has it.
  double messages_per_step(const MethodSpec& candidate) const {
    const SimMethod method = sim_method(candidate, cluster_);
    const int rounds = std::clamp(method.schedule.period, 1, 16);
    const PlanOptions options = plan_options(method);
    double messages = 0;
    for (int t = 0; t < rounds; ++t) {
      const Plan plan = compile(round_at(method.schedule, t), shape_, 0, 1 << 20, options);
      messages += static_cast<double>(traffic(plan, shape_, 0).messages) / rounds;
    }
    return messages * shape_.workers() * static_cast<double>(workload_.buckets.size());
  }

  /// Time over steps of all workers together: those who are ahead have done more.
  static double step_of_everybody(const SimResult& result, std::int64_t warm_up) {
    double per_second = 0;
    for (const auto& steps : result.steps) {
      const auto from = steps.begin() + warm_up;
      const double seconds = to_seconds(steps.back().end - from->begin);
      per_second += static_cast<double>(steps.end() - from) / seconds;
    }
    return static_cast<double>(result.steps.size()) / per_second;
  }

  RankedCandidate with_steps(RankedCandidate ranked, double taken = 1) {
    if (ranked.exposed_s < kRounding * ranked.step_s) ranked.exposed_s = 0;
    const Mixing& mixed = mixing_of(ranked.candidate);
    const MixingRate mixing{shape_.workers(), mixed.rho, taken, averaged_by(ranked.candidate)};
    ranked.steps = steps_ratio(ranked.candidate, mixing, target_);
    ranked.total_s = static_cast<double>(target_.steps) * ranked.steps.ratio * ranked.step_s;
    return ranked;
  }

  const ClusterSpec& cluster_;
  const HostShape shape_;
  const Workload& workload_;
  const Target& target_;
  double least_compute_s_ = 0;  ///< of a step
  std::map<std::string, Mixing> mixings_;
  std::map<std::string, double> link_s_;  ///< by topology
};

/// Of all parameters of a worker, one way, by whom it takes longest; 0 where the method copies
/// nothing, or the model does not know it.
double longest_copy_s(const ClusterSpec& cluster, const Workload& workload,
                      const MethodSpec& candidate) {
  if (!is_modelled(candidate)) return 0;
  Workload whole = workload;
  whole.buckets = {elements_of(workload)};
  const std::vector<double> copies =
      device_copy_s(cluster, whole, device_copies(facts_of(candidate), candidate.late));
  return copies.empty() ? 0 : std::ranges::max(copies);
}

ClusterSpec without_devices(ClusterSpec cluster) {
  for (HostSpec& host : cluster.hosts) host.device = {};
  return cluster;
}

void sort(std::vector<RankedCandidate>& candidates) {
  std::ranges::stable_sort(candidates, [](const RankedCandidate& a, const RankedCandidate& b) {
    if (std::isnan(a.total_s) != std::isnan(b.total_s)) return std::isnan(b.total_s);
    return std::isnan(a.total_s) ? a.step_s < b.step_s : a.total_s < b.total_s;
  });
}

/// Candidates that are not timed as long as they cannot be among the best.
class Unranked {
 public:
  /// Times those that average gradients.
  Unranked(Ranker& ranker, const std::vector<MethodSpec>& candidates,
           std::vector<RankedCandidate>& ranked)
      : ranker_(ranker) {
    for (const MethodSpec& candidate : candidates) {
      if (averages_gradients(candidate)) {
        ranked.push_back(ranker.by_model(candidate));
      } else {
        open_.push_back({ranker.least_total_s(candidate), candidate});
      }
    }
    std::ranges::stable_sort(open_, std::ranges::greater(), &Open::least_s);
  }

  int count() const { return static_cast<int>(open_.size()); }

  void leave_out(const MethodSpec& candidate) {
    std::erase_if(open_, [&](const Open& open) { return open.candidate == candidate; });
  }

  /// Whether one of them may be among the best `wanted`; sorts those that are ranked.
  bool may_be_among(int wanted, std::vector<RankedCandidate>& ranked) const {
    if (open_.empty()) return false;
    if (std::ssize(ranked) < wanted) return true;
    sort(ranked);
    return open_.back().least_s <= ranked[static_cast<std::size_t>(wanted) - 1].total_s;
  }

  void rank_the_best(int wanted, std::vector<RankedCandidate>& ranked) {
    while (may_be_among(wanted, ranked)) {
      ranked.push_back(ranker_.by_model(open_.back().candidate));
      open_.pop_back();
    }
  }

 private:
  struct Open {
    double least_s = 0;  ///< what its total cannot be below
    MethodSpec candidate;
  };
  Ranker& ranker_;
  std::vector<Open> open_;  ///< the most promising last
};

/// Simulates until the best `count` and the best all-reduce are, but for those that take too long.
void refine(std::vector<RankedCandidate>& candidates, std::size_t count, Ranker& ranker,
            std::set<std::string>& done) {
  const auto is_open = [&](const RankedCandidate& c) {
    return !done.contains(name_of(c.candidate));
  };
  for (;;) {
    sort(candidates);
    RankedCandidate* next = &candidates[best_allreduce(candidates)];
    for (std::size_t k = count; k-- > 0;) {
      if (is_open(candidates[k])) next = &candidates[k];
    }
    if (!is_open(*next)) return;
    done.insert(name_of(next->candidate));
    const std::int64_t steps = ranker.affordable_steps(next->candidate);
    if (steps >= kFewestSimulatedSteps) *next = ranker.by_simulation(next->candidate, steps);
  }
}

/// How much a candidate asks of those who run it.
int effort(const MethodSpec& c) {
  return (facts_of(c).is_ddp ? 0 : 1) + (c.codec == Codec::fp32 ? 0 : 2) +
         (c.schedule.local_steps == 1 ? 0 : 4) + (c.schedule.global_average == 0 ? 0 : 4) +
         (c.late == Late::wait ? 0 : 4);
}

/// Of those that take up to `most_s`, the one of least effort, or the first of several.
std::size_t simplest(const std::vector<RankedCandidate>& candidates, bool is_allreduce,
                     double most_s) {
  const RankedCandidate* chosen = nullptr;
  for (const RankedCandidate& c : candidates) {
    if (!(c.total_s <= most_s) || averages_gradients(c.candidate) != is_allreduce) continue;
    if (!chosen || effort(c.candidate) < effort(chosen->candidate)) chosen = &c;
  }
  return static_cast<std::size_t>(chosen - candidates.data());
}

}  // namespace

std::vector<MethodSpec> candidates_for(const ClusterSpec& cluster) {
  std::vector<MethodSpec> candidates{{.pattern = "ddp"}, {.pattern = "ddp", .codec = Codec::bf16}};
  for (Codec codec : kAllCodecs) candidates.push_back({.pattern = "allreduce", .codec = codec});
  for (const Topology& topology : topologies()) {
    if (topology.stochasticity != Stochasticity::doubly) continue;  // for push_sum only
    const MethodSpec plain{.schedule = {.topology = std::string(topology.name)}};
    if (!can_serve(plain, cluster)) continue;
    for (Codec codec : kAllCodecs) {
      MethodSpec candidate = plain;
      candidate.codec = codec;
      candidates.push_back(candidate);
      candidate.schedule.local_steps = kLocalSteps;
      candidates.push_back(candidate);
      candidate.schedule.local_steps = 1;
      candidate.schedule.global_average = kGlobalAverage;
      if (topology.name != "complete") candidates.push_back(candidate);
    }
  }
  return candidates;
}

Ranking rank(const ClusterSpec& cluster, const Workload& workload, const Target& target,
             const RankingOptions& options) {
  check_cluster(cluster);
  check_workload(workload, cluster.shape().workers());
  Ranker ranker(cluster, workload, target);
  Ranking ranking;
  Unranked unranked(ranker, candidates_for(cluster), ranking.candidates);
  for (const MethodSpec& candidate : skipping_candidates(workload)) {
    const std::int64_t steps = ranker.affordable_steps(candidate);
    if (steps < kFewestSimulatedSteps) continue;
    ranking.candidates.push_back(ranker.by_simulation(candidate, steps));
  }
  for (const MethodSpec& candidate : options.also) {
    unranked.leave_out(candidate);
    const auto is_it = [&](const RankedCandidate& c) { return c.candidate == candidate; };
    if (std::ranges::any_of(ranking.candidates, is_it)) continue;
    ranking.candidates.push_back(is_modelled(candidate)
                                     ? ranker.by_model(candidate)
                                     : ranker.by_simulation(candidate, kWarmUp + kSimulatedSteps));
  }
  const int wanted = std::max(1, options.wanted);
  std::set<std::string> simulated;
  do {
    unranked.rank_the_best(wanted, ranking.candidates);
    const auto most = static_cast<int>(ranking.candidates.size());
    refine(ranking.candidates, static_cast<std::size_t>(std::clamp(options.simulated, 1, most)),
           ranker, simulated);
  } while (unranked.may_be_among(wanted, ranking.candidates));
  ranking.slower = unranked.count();
  const double best_s = ranking.candidates.front().total_s;
  const RankedCandidate& all = ranking.candidates[best_allreduce(ranking.candidates)];
  const bool takes_allreduce = all.total_s <= best_s * (1 + options.too_close);
  ranking.recommended =
      simplest(ranking.candidates, takes_allreduce,
               takes_allreduce ? best_s * (1 + options.too_close) : best_s * (1 + options.alike));
  ranking.reasons = reasons_for(ranking, workload, target);
  const MethodSpec& chosen = ranking.candidates[ranking.recommended].candidate;
  if (const double copy_s = longest_copy_s(cluster, workload, chosen); copy_s > 0) {
    const ClusterSpec hosts = without_devices(cluster);
    Ranker without(hosts, workload, target);
    ranking.reasons.push_back(copies_reason({.copy_s = copy_s,
                                             .step_s = ranker.by_model(chosen).step_s,
                                             .without_s = without.by_model(chosen).step_s}));
  }
  ranking.doubts = doubts_about(ranking, workload, target);
  return ranking;
}

}  // namespace gossamer
