#pragma once
/// The trace of a run: what the workers of this process did in its last steps, as one file.

#include <deque>
#include <filesystem>
#include <functional>

#include "gossamer/engine/trace_file.h"
#include "gossamer/recipe/spec.h"

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

}  // namespace gossamer
