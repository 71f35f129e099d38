#pragma once
/// A training run with workers as processes that a launcher started: this process's part of it.

#include <string>

#include "gossamer/train/job.h"
#include "gossamer/train/run.h"

namespace gossamer {

/// What begin_process() says and asks.
struct BeginOptions {
  std::string command;           ///< for messages
  bool hosts_are_asked = false;  ///< by a flag, which the launcher must not contradict
};

/// Puts the launcher's hosts into the recipe, checks it, and opens its data: all processes or none.
/// Throws std::invalid_argument for hosts that the launcher has not started, and for a recipe that
/// emulates links: only those between threads of one process are.
Task begin_process(Recipe& recipe, TrainJob& job, const BeginOptions& options);

/// What must be alike for the workers to do the same thing: the recipe, and what the data contain,
/// wherever they lie.
std::string shared_words(const Recipe& recipe, const Task& task);

/// Trains as worker job.rank() of what run_training() trains with threads, with the same numbers;
/// rank 0 writes run.toml and summary.json. With `topology = auto` the job is probed first. All
/// processes of the job must call it. Throws as run_training() does, Interrupted where args.stop
/// was set, and where another worker is lost TransportError, which names it.
TrainResult run_process(Recipe& recipe, const Task& task, const TrainRunArgs& args, TrainJob& job);

}  // namespace gossamer
