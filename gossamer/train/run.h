#pragma once
/// A training run in one process: workers as threads on an emulated cluster; what other runs share.

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "gossamer/base/folder_lock.h"
#include "gossamer/base/json.h"
#include "gossamer/recipe/recipe.h"
#include "gossamer/train/plan.h"
#include "gossamer/train/worker.h"

namespace gossamer {

/// What a run needs besides its recipe.
struct TrainRunArgs {
  std::filesystem::path out;
  std::string job = {};  ///< as FolderLock has it
  bool resume = false;
  /// A run in the folder that has neither a checkpoint nor ended is begun again.
  bool may_begin_again = false;
  const std::atomic<bool>* stop = nullptr;
  const std::atomic<int>* preempted = nullptr;  ///< see TrainContext
  std::function<void(std::int64_t step, double loss, double step_s)> progress;
};

struct TrainResult {
  TrainSummary summary;
  double compute_ms = 0;        ///< of a step, as measured or given; 0: neither
  double link_bytes_per_s = 0;  ///< of the emulated links; 0: not emulated
  std::string data;             ///< what was read
  /// Made before the run, where links are emulated and the compute time is known.
  std::optional<RunPrediction> prediction = {};
};

/// Makes the run folder args.out and writes run.toml, or refuses a folder that already holds a run
/// which `args` does not say to go on with. What it returns is to be held as long as the folder is
/// used. Throws IoError where another job uses it, and where the system does.
FolderLock prepare_folder(const Recipe& recipe, const Task& task, const TrainRunArgs& args);

/// Writes summary.json; nothing for an empty folder.
void write_summary(const Recipe& recipe, const TrainResult& result,
                   const std::filesystem::path& out);

/// The data of a recipe; an empty path stands for the Python standard library's sources.
Task open_task(const Recipe& recipe);

/// The section's hosts with links of this rate; 0: without a limit.
ClusterSpec emulated_cluster(const ClusterSection& section, double link_bytes_per_s);

/// Seconds per step with all workers computing at once and nobody talking: forward, backward and
/// update, as γ means it.
double measure_compute_s(const Recipe& recipe, const Task& task);

/// Puts a method in place of `topology = auto`, says which and why on stderr, and writes run.toml
/// into `out`, if any, anew.
void settle_method(Recipe& recipe, const RunScenario& scenario, const std::filesystem::path& out);

/// What the run will take; nothing where that cannot be said. Leaves prediction.json in `out`, if
/// any.
std::optional<RunPrediction> foresee(const Recipe& recipe, const Task& task, RunScenario scenario,
                                     const std::filesystem::path& out);

/// Bytes that one host sends when a flat ring all-reduce averages the model once: what γ counts.
double allreduce_bytes_per_host(const HostShape& shape, std::int64_t parameters);

/// Trains; rethrows the error of the worker that caused it. Writes run.toml, prediction.json and
/// summary.json into args.out where that is given. What the run chose and measured is in `recipe`.
TrainResult run_training(Recipe& recipe, const Task& task, const TrainRunArgs& args);

/// The object that `--json` prints.
Json summary_json(const Recipe& recipe, const TrainResult& result);

}  // namespace gossamer
