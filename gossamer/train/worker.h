#pragma once
/// One worker of a training run: model, engine and loop, over any transport.

#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "gossamer/base/folder_lock.h"
#include "gossamer/engine/arrival.h"
#include "gossamer/engine/engine.h"
#include "gossamer/recipe/recipe.h"
#include "gossamer/torch/data/task.h"
#include "gossamer/train/trace.h"

namespace gossamer {

/// Thrown by a worker when the run was asked to stop.
class Interrupted : public std::runtime_error {
 public:
  explicit Interrupted(const std::string& what, int signal = SIGINT)
      : std::runtime_error(what), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

/// Of a worker that comes back: it has yet to agree with the others on where to begin.
struct ComingBack {
  Arrival arrival;
  std::string state = {};            ///< of one that is there
  std::function<void()> on_start{};  ///< when it has agreed
};

/// Thrown by such a worker: it could not agree with the others, and may in another try.
class StartMissed : public TransportError {
 public:
  using TransportError::TransportError;
};

/// What all workers of a process share; all of it is read only or safe to share.
struct TrainContext {
  const Recipe* recipe = nullptr;
  const Task* task = nullptr;
  std::filesystem::path out;   ///< run folder; empty: write nothing
  FolderLock* lock = nullptr;  ///< of `out`, where this process has one
  std::string job;             ///< as FolderLock has it
  bool resume = false;         ///< from the newest checkpoint in `out`
  ComingBack* back = nullptr;  ///< null: it begins with the others
  RunTrace* trace = nullptr;   ///< null: nothing is recorded
  const std::atomic<bool>* stop = nullptr;
  /// The signal after which all workers save and stop; 0: none has come. Null: none is expected.
  const std::atomic<int>* preempted = nullptr;
  /// Rank 0 reports here (may be empty): steps done, its loss, and mean seconds per step.
  std::function<void(std::int64_t step, double loss, double step_s)> progress;
};

/// The figures of a run; the same on every worker.
struct TrainSummary {
  std::int64_t steps = 0;  ///< done in all, with those before a resume
  int workers_left = 0;    ///< of those that began, how many came to the end
  int speaker = 0;         ///< the first of these
  double ms_per_step = 0;
  double exposed_ms = 0;
  double bytes_per_host_per_step = 0;
  double train_loss = 0;  ///< mean over workers of the last steps
  double val_loss = 0;
  double val_accuracy = 0;
  std::optional<double> perplexity = {};  ///< exp(val_loss), where classes are tokens
  double disagreement = 0;
  bool are_metrics_whole = true;  ///< of all workers
  std::int64_t parameters = 0;
};

/// Trains to the recipe's last step and validates the consensus model. All workers must call it.
TrainSummary train_worker(const TrainContext& context, Transport& transport);

}  // namespace gossamer
