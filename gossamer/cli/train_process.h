#pragma once
/// A training run with workers as processes that a launcher started: this process's part of it.

#include "gossamer/cli/train_job.h"
#include "gossamer/cli/train_run.h"

namespace gossamer {

/// Puts the launcher's hosts into the spec. Throws std::invalid_argument for a spec that emulates
/// links: only those between threads of one process are.
void take_shape(TrainSpec& spec, const TrainJob& job);

/// Trains as worker job.rank() of what run_training() trains with threads, with the same numbers;
/// rank 0 writes run.toml and summary.json. With `topology = auto` the job is probed first. All
/// processes of the job must call it. Throws as run_training() does, Interrupted where args.stop
/// was set, and where another worker is lost TransportError, which names it.
TrainResult run_process(TrainSpec& spec, const Task& task, const TrainRunArgs& args, TrainJob& job);

}  // namespace gossamer
