#include "gossamer/plan/ranking_words.h"

#include <algorithm>
#include <cstdio>

#include "gossamer/base/units.h"

namespace gossamer {
namespace {

constexpr double kUneven = 1.2;  // slowest over fastest worker

std::string two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

/// Whether it is DDP with a hook that compresses.
bool is_hook(const MethodSpec& method) {
  return facts_of(method).is_ddp && method.codec != Codec::fp32;
}

}  // namespace

std::size_t best_allreduce(const std::vector<RankedCandidate>& candidates) {
  const auto found = std::ranges::find_if(
      candidates, [](const RankedCandidate& c) { return averages_gradients(c.candidate); });
  return static_cast<std::size_t>(found - candidates.begin());
}

bool has_stragglers(const Workload& workload) {
  const std::vector<double>& factors = workload.compute.factors;
  if (factors.empty()) return false;
  const auto [least, most] = std::ranges::minmax(factors);
  return least > 0 && most / least >= kUneven;
}

std::vector<std::string> reasons_for(const Ranking& ranking, const Workload& workload,
                                     const Target& target) {
  const RankedCandidate& chosen = ranking.candidates[ranking.recommended];
  const RankedCandidate& best = ranking.candidates.front();
  const RankedCandidate& all = ranking.candidates[best_allreduce(ranking.candidates)];
  std::vector<std::string> reasons;
  const std::string all_name = name_of(all.candidate);
  if (is_hook(chosen.candidate)) {
    reasons.push_back(
        name_of(chosen.candidate) +
        " is torch's DistributedDataParallel with its hook: "
        "model.register_comm_hook(None, default_hooks.bf16_compress_hook), or fp16. It "
        "needs no Gossip; where one is made, it takes allreduce:bf16.");
  }
  if (averages_gradients(chosen.candidate)) {
    reasons.push_back(name_of(chosen.candidate) + " waits for links " +
                      format_duration(chosen.exposed_s) + " of a step of " +
                      format_duration(chosen.step_s) + ".");
    if (&chosen != &best) {
      reasons.push_back(name_of(best.candidate) + " would save " +
                        two_digits(100 * (1 - best.total_s / chosen.total_s)) +
                        " % by this estimate: too little to change the method for.");
    } else {
      reasons.push_back("Nothing that gossips makes up for the steps that it needs in addition.");
    }
    return reasons;
  }
  reasons.push_back("A step computes for " + format_duration(workload.compute.mean_s) + "; " +
                    all_name + ", the best all-reduce, waits for " +
                    format_duration(all.exposed_s) + " beside it, " + name_of(chosen.candidate) +
                    " for " + format_duration(chosen.exposed_s) + ".");
  std::string parts;
  for (const StepsPart& part : chosen.steps.parts) {
    if (part.more < 0.005) continue;
    parts += (parts.empty() ? ": " : ", ") + two_digits(part.more) + " for " + part.why;
  }
  reasons.push_back("It needs " + std::string(target.steps_ratio > 0 ? "" : "at least ") +
                    two_digits(chosen.steps.ratio) + " times as many steps as all-reduce" + parts +
                    ".");
  reasons.push_back("The same loss in " + two_digits(chosen.total_s / all.total_s) +
                    " of the time of " + all_name + ".");
  return reasons;
}

std::string copies_reason(const CopyCost& cost) {
  constexpr double kFelt = 1.01;
  std::string text = "A copy of all parameters between a GPU and the host's memory takes " +
                     format_duration(cost.copy_s) + " each way";
  if (cost.step_s <= kFelt * cost.without_s) return text + "; the step hides it.";
  return text + ": it makes the step " + two_digits(cost.step_s / cost.without_s) +
         " times as long.";
}

std::vector<std::string> doubts_about(const Ranking& ranking, const Workload& workload,
                                      const Target& target) {
  const RankedCandidate& all = ranking.candidates[best_allreduce(ranking.candidates)];
  const auto is_gossip = [](const RankedCandidate& c) { return !averages_gradients(c.candidate); };
  auto gossip = ranking.candidates.begin() + static_cast<std::ptrdiff_t>(ranking.recommended);
  if (!is_gossip(*gossip)) gossip = std::ranges::find_if(ranking.candidates, is_gossip);
  std::vector<std::string> doubts;
  if (gossip != ranking.candidates.end()) {
    const double even = all.total_s / (static_cast<double>(target.steps) * gossip->step_s);
    doubts.push_back(name_of(gossip->candidate) + " and " + name_of(all.candidate) +
                     " are even if the former needs " + two_digits(even) + " times as many steps." +
                     (target.steps_ratio > 0
                          ? ""
                          : " The estimate is from small runs: train both for some hundred steps "
                            "and give the ratio as steps_ratio."));
  }
  if (gossip != ranking.candidates.end()) {
    for (std::string& limit : limits_of_ratio(gossip->candidate, target)) {
      doubts.push_back(std::move(limit));
    }
  }
  if (workload.compute.jitter == Jitter::constant) {
    doubts.push_back("Compute times are taken as constant: measure their deviation.");
  }
  if (has_stragglers(workload)) {
    doubts.push_back(
        "Workers differ in speed: those who skip go on without late neighbours, and "
        "what their older parameters cost is not in the estimate.");
  }
  return doubts;
}

}  // namespace gossamer
