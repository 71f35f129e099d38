#pragma once
/// The trace of a run: what the workers of this process did in its last steps, as one file.

#include <deque>
#include <filesystem>
#include <functional>

#include "gossamer/base/cluster.h"
#include "gossamer/engine/trace_file.h"

namespace gossamer {

class RunTrace {
 public:
  /// Of the last `steps` steps; records nothing for an empty path, or for 0 steps.
  RunTrace(HostShape shape, int steps, std::filesystem::path file);

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

}  // namespace gossamer
