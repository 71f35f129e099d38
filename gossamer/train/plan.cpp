#include "gossamer/train/plan.h"

#include "gossamer/base/units.h"
#include "gossamer/plan/ranking.h"
#include "gossamer/sim/simulate.h"

namespace gossamer {
namespace {

constexpr std::int64_t kUncountedSteps = 10;
constexpr std::int64_t kSteps = 50;

Target target_of(const TrainSpec& spec) {
  return {.steps = spec.steps, .optimizer = spec.optimizer};
}

}  // namespace

std::vector<std::string> choose_method(TrainSpec& spec, const RunScenario& scenario) {
  const Ranking ranking = rank(scenario.cluster, scenario.workload, target_of(spec));
  const MethodSpec& chosen = ranking.candidates[ranking.recommended].candidate;
  set_method(chosen, spec);
  if (averages_gradients(chosen)) {
    spec.pattern = "allreduce";  // which is what stands in for ddp
    spec.topology = "complete";
  }
  spec.link_rates.clear();
  if (chosen.schedule.topology == "fitted") {
    for (const double rate : link_rates(scenario.cluster)) {  // as it was ranked
      spec.link_rates.push_back(format_rate(rate));
    }
  }
  std::vector<std::string> sentences{"topology auto: " + name_of(chosen) + "."};
  sentences.insert(sentences.end(), ranking.reasons.begin(), ranking.reasons.end());
  return sentences;
}

std::optional<RunPrediction> predict_run(const TrainSpec& spec, const RunScenario& scenario) {
  if (spec.adaptive_average > 0) return std::nullopt;
  const SimMethod method = sim_method(method_of(spec), scenario.cluster);
  const SimResult result =
      simulate(scenario.cluster, scenario.workload, method, {.steps = kUncountedSteps + kSteps});
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
