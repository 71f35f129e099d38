#pragma once
/// Transports as Python holds them.

#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "gossamer/torch/c10d_transport.h"
#include "gossamer/transport/transport.h"

namespace gossamer::python {

/// A transport with the tensors of its requests, which it keeps until their release.
class TransportHandle {
 public:
  explicit TransportHandle(std::unique_ptr<Transport> transport)
      : transport_(std::move(transport)) {}
  ~TransportHandle();
  TransportHandle(const TransportHandle&) = delete;
  TransportHandle& operator=(const TransportHandle&) = delete;

  /// Throws std::invalid_argument after `stop`.
  std::shared_ptr<Transport> get() const;
  /// Ends the transport; what another thread waits for fails. Takes a few seconds at most, and
  /// leaves the end to others that still hold the transport then.
  void stop();
  /// Stops, and lets the threads that were inside come back to Python: a thread that came back
  /// while the interpreter ends would end the process with it. With the interpreter held.
  void stop_for_exit();
  void keep(Request request, at::Tensor tensor);
  void forget(Request request);

 private:
  friend class Away;
  int inside_ = 0;            // threads inside, guarded by the interpreter's lock
  mutable std::mutex mutex_;  // guards all below
  std::unordered_map<Request, at::Tensor> tensors_;
  std::shared_ptr<Transport> transport_;
};

/// For as long as it lives, this thread is inside the transport and other threads may run Python.
class Away {
 public:
  explicit Away(TransportHandle& handle) : handle_(handle) {
    ++handle_.inside_;
    no_gil_.emplace();
  }
  ~Away() {
    no_gil_.reset();
    --handle_.inside_;
  }
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;

 private:
  TransportHandle& handle_;
  std::optional<pybind11::gil_scoped_release> no_gil_;
};

/// From {peer: process group}; a group of two, or one in which everybody has their own rank.
C10dOptions c10d_options(int rank, int workers, const pybind11::dict& groups);

void bind_transport(pybind11::module_& module);

}  // namespace gossamer::python
