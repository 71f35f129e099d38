#include "gossamer/train/plan.h"

#include "gossamer/base/units.h"
#include "gossamer/plan/ranking.h"
#include "gossamer/sim/simulate.h"

namespace gossamer {
namespace {

constexpr std::int64_t kUncountedSteps = 10;
constexpr std::int64_t kSteps = 50;

}  // namespace

Target target_of(const Recipe& recipe) {
  return {.steps = recipe.run.steps, .optimizer = std::string(recipe.optimizer.optimizer->name)};
}

std::vector<std::string> choose_method(AlgorithmSection& algorithm, const Target& target,
                                       const RunScenario& scenario) {
  const Ranking ranking = rank(scenario.cluster, scenario.workload, target);
  const MethodSpec& chosen = ranking.candidates[ranking.recommended].candidate;
  set_method(chosen, algorithm);
  if (averages_gradients(chosen)) algorithm.topology = "complete";
  algorithm.link_rates.clear();
  if (chosen.schedule.topology == "fitted") {
    for (const double rate : link_rates(scenario.cluster)) {  // as it was ranked
      algorithm.link_rates.push_back(format_rate(rate));
    }
  }
  std::vector<std::string> sentences{"topology auto: " + name_of(chosen) + "."};
  sentences.insert(sentences.end(), ranking.reasons.begin(), ranking.reasons.end());
  return sentences;
}

std::optional<RunPrediction> predict_run(const MethodSpec& method, const RunScenario& scenario) {
  if (method.schedule.adaptive_average > 0) return std::nullopt;
  const SimMethod simulated = sim_method(method, scenario.cluster);
  const SimResult result =
      simulate(scenario.cluster, scenario.workload, simulated, {.steps = kUncountedSteps + kSteps});
  RunPrediction prediction{.step_s = mean_step_s(result, kUncountedSteps),
                           .exposed_s = mean_waited_s(result, kUncountedSteps)};
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
