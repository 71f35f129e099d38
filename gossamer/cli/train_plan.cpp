#include "gossamer/cli/train_plan.h"

#include "gossamer/base/units.h"
#include "gossamer/plan/ranking.h"
#include "gossamer/sim/simulate.h"

namespace gossamer {
namespace {

constexpr std::int64_t kWarmUp = 10;
constexpr std::int64_t kSteps = 50;

Target target_of(const TrainSpec& spec) {
  return {.steps = spec.steps, .optimizer = spec.optimizer};
}

/// Nothing where the simulator does not know the pattern.
std::optional<SimPattern> simulated(std::string_view pattern) {
  if (pattern == "cwa") return SimPattern::cwa;
  if (pattern == "gradient_gossip") return SimPattern::gradient_gossip;
  if (pattern == "allreduce") return SimPattern::allreduce;
  return std::nullopt;
}

}  // namespace

std::vector<std::string> choose_method(TrainSpec& spec, const RunScenario& scenario) {
  const Ranking ranking = rank(scenario.cluster, scenario.workload, target_of(spec));
  const Candidate& chosen = ranking.candidates[ranking.recommended].candidate;
  const bool is_allreduce = averages_gradients(chosen);
  spec.pattern = is_allreduce ? "allreduce" : "cwa";
  spec.topology = is_allreduce ? "complete" : chosen.method;
  if (chosen.method == "allreduce") spec.group_method = "hierarchical";
  spec.codec = std::string(name_of(chosen.codec));
  spec.link_rates.clear();
  if (chosen.method == "fitted") {
    for (const double rate : link_rates(scenario.cluster)) {  // as it was ranked
      spec.link_rates.push_back(format_rate(rate));
    }
  }
  spec.local_steps = chosen.local_steps;
  spec.global_average = chosen.global_average;
  if (chosen.late == SimLate::skip) {
    spec.late = "skip";
    spec.staleness = chosen.staleness;
  }
  std::vector<std::string> sentences{"topology auto: " + name_of(chosen) + "."};
  sentences.insert(sentences.end(), ranking.reasons.begin(), ranking.reasons.end());
  return sentences;
}

std::optional<RunPrediction> predict_run(const TrainSpec& spec, const RunScenario& scenario) {
  const std::optional<SimPattern> pattern = simulated(spec.pattern);
  if (!pattern || spec.adaptive_average > 0) return std::nullopt;
  SimMethod method{.schedule = schedule_of(spec),
                   .pattern = *pattern,
                   .group_method = group_method_of(spec),
                   .codec = find_codec(spec.codec),
                   .stagger = spec.stagger,
                   .staleness = spec.staleness};
  if (gossips(*pattern) && update_of(spec) == UpdateAt::backward)
    method.update = SimUpdate::backward;
  if (late_of(spec) == Late::skip) method.late = SimLate::skip;
  const SimResult result =
      simulate(scenario.cluster, scenario.workload, method, {.steps = kWarmUp + kSteps});
  RunPrediction prediction{.step_s = mean_step_s(result, kWarmUp),
                           .exposed_s = mean_waited_s(result, kWarmUp)};
  prediction.compute_s = prediction.step_s - prediction.exposed_s;
  prediction.bytes_per_host = sent_bytes_per_step(result);
  return prediction;
}

Json to_json(const RunPrediction& prediction) {
  return {{"step_s", prediction.step_s},
          {"compute_s", prediction.compute_s},
          {"exposed_s", prediction.exposed_s},
          {"bytes_per_host_per_step", prediction.bytes_per_host},
          {"source", "simulator"}};
}

}  // namespace gossamer
