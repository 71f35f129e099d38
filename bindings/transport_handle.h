#pragma once
/// A transport as Python holds it.

#include <torch/csrc/utils/pybind.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "bindings/process.h"
#include "gossamer/engine/roll_call.h"
#include "gossamer/transport/transport.h"

namespace gossamer::python {

/// A transport with the tensors of its requests, which it keeps until their release.
class TransportHandle {
 public:
  /// `job`: a word for the job that all its workers know, and that is no secret; may be empty.
  explicit TransportHandle(std::unique_ptr<Transport> transport, std::string job = "")
      : job_(std::move(job)), transport_(std::move(transport)) {}
  ~TransportHandle();
  TransportHandle(const TransportHandle&) = delete;
  TransportHandle& operator=(const TransportHandle&) = delete;

  const std::string& job() const { return job_; }
  /// Throws std::invalid_argument after `stop`.
  std::shared_ptr<Transport> get() const;
  /// From now on its workers tell each other what they have come to.
  void begin_roll_call(RollCallOptions options);
  /// Null where they do not.
  std::shared_ptr<RollCall> roll_call() const;
  /// Ends the transport, or closes all its edges where something else, such as an engine, holds it
  /// too. What other threads wait for fails, and for a few seconds at most they are given the time
  /// to come back to Python: a thread that comes back while the interpreter ends would end the
  /// process with it. Without the interpreter, and not inside.
  void stop();
  /// This thread goes inside, or comes back to Python.
  void enter() { ++inside_; }
  void leave() { --inside_; }
  void keep(Request request, at::Tensor tensor);
  /// Brings what a finished receive was given in place to its tensor.
  void land(Request request, const Status& status);
  void forget(Request request);

 private:
  const HomeProcess home_;
  const std::string job_;
  std::atomic<int> inside_ = 0;  // threads
  mutable std::mutex mutex_;     // guards all below
  std::unordered_map<Request, at::Tensor> tensors_;
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<RollCall> roll_call_;  // uses the transport
};

}  // namespace gossamer::python
