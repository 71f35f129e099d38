#pragma once
/// An engine as Python holds it.

#include <torch/csrc/utils/pybind.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/process.h"
#include "bindings/transport_handle.h"
#include "bindings/typing.h"
#include "gossamer/engine/roll_call.h"
#include "gossamer/torch/tensors/gradient_average.h"
#include "gossamer/torch/tensors/tensor_engine.h"

namespace gossamer::python {

/// A TensorEngine with the transport it runs over, which it holds as long as it lives.
class EngineHandle {
 public:
  /// (name, tensor, parameter group)
  using Parameter = std::tuple<std::string, at::Tensor, int>;

  /// (name, tensor, steps from one mix to the next)
  using Beside = std::tuple<std::string, at::Tensor, std::int64_t>;

  EngineHandle(const OrNone<TransportHandle>& transport, const std::vector<Parameter>& tensors,
               EngineOptions options, std::int64_t bucket_bytes, OrNone<Recorder> recorder,
               const std::vector<Beside>& beside);
  ~EngineHandle();
  EngineHandle(const EngineHandle&) = delete;
  EngineHandle& operator=(const EngineHandle&) = delete;

  /// Throws std::invalid_argument after `close`.
  TensorEngine& get() const;
  Transport& transport() const;
  /// Gradients are averaged in every backward pass from now on.
  void average_gradients(const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                         std::int64_t bucket_bytes, const std::string& codec, bool at_end,
                         std::optional<Schedule> rounds, bool staggers, StandIns stand_ins,
                         ReplicaState replica);
  /// Null where they are not averaged.
  GradientAverage* gradients() const { return gradients_.get(); }
  StepReport step(const std::vector<Hyper>& groups, bool skip, double loss);

  /// Does what no step waits in: what the others have come to meanwhile does not end it.
  template <class Work>
  auto aside(Work work) {
    struct Counted {
      std::atomic<int>& count;
      explicit Counted(std::atomic<int>& of) : count(of) { ++count; }
      ~Counted() { --count; }
    };
    const Counted counted(aside_);
    return work(get());
  }
  /// What all workers say that have come to `what`, by rank, once all have.
  std::vector<pybind11::bytes> call(const std::string& what, const pybind11::bytes& own);

  /// First waits, for so long at most, until the others have what this worker sent in steps that
  /// are done.
  void close(double gives_for_s = 0);

 private:
  Progress progress() const;
  /// Now and then while something is waited for; not before the engine is there.
  void look() const;

  const HomeProcess home_;
  const std::shared_ptr<Recorder> recorder_;
  std::atomic<int> aside_ = 0;
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<RollCall> roll_call_;
  std::unique_ptr<TensorEngine> engine_;
  std::unique_ptr<GradientAverage> gradients_;
};

}  // namespace gossamer::python
