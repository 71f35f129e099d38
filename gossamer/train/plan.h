#pragma once
/// What a run will take, said before it begins, and the method of `topology = auto`.

#include <optional>
#include <string>
#include <vector>

#include "gossamer/base/json.h"
#include "gossamer/model/workload.h"
#include "gossamer/plan/ranking.h"
#include "gossamer/recipe/recipe.h"

namespace gossamer {

/// What is known of a run before it begins.
struct RunScenario {
  ClusterSpec cluster;
  Workload workload;
};

/// Puts what rank() recommends in place of `auto`: topology, pattern, codec, local steps, global
/// averages, late; returns its sentences, the recommendation first. Values of the section that were
/// set and that the method leaves open stay.
std::vector<std::string> choose_method(AlgorithmSection& algorithm, const Target& target,
                                       const RunScenario& scenario);

/// What a run is to reach, for choose_method().
Target target_of(const Recipe& recipe);

/// What a simulation of the run says; nothing for what it does not know (atc, averages that the
/// loss decides).
struct RunPrediction {
  double step_s = 0;
  double exposed_s = 0;
  double compute_s = 0;
  std::vector<double> bytes_per_host;  ///< sent to other hosts per step
};
std::optional<RunPrediction> predict_run(const MethodSpec& method, const RunScenario& scenario);

/// The content of prediction.json in a run folder.
Json to_json(const RunPrediction& prediction);

}  // namespace gossamer
