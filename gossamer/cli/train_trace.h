#pragma once
/// The trace of a run: what the workers of this process did in its last steps, as one file.

#include <deque>
#include <filesystem>
#include <functional>

#include "gossamer/cli/train_spec.h"
#include "gossamer/engine/collectives.h"
#include "gossamer/engine/recorder.h"

namespace gossamer {

class RunTrace {
 public:
  /// Records nothing for an empty path, or where the spec asks for no trace.
  RunTrace(const TrainSpec& spec, std::filesystem::path file);

  /// That of a worker; null: nothing is to be recorded.
  Recorder* recorder(int rank);
  /// Runs the workers of this process, then writes the file: whole or not at all, also where they
  /// throw. Not if no worker has begun to train. Throws what `work` throws, and IoError.
  void around(const std::function<void()>& work);

 private:
  void write() const;

  const HostShape shape_;
  const std::filesystem::path file_;
  std::deque<Recorder> recorders_;  ///< by rank
};

/// Removes what traces a run has left in its folder, be it of threads or of processes.
void remove_traces(const std::filesystem::path& folder);

/// Lets all workers' traces begin at one moment: now, by the system clock of rank 0. Collective; on
/// other hosts it is as exact as their clocks agree.
void share_start(Recorder& recorder, Collectives& collectives);

}  // namespace gossamer
