#include "bindings/stopping.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <vector>

#include "bindings/process.h"
#include "bindings/signals.h"
#include "bindings/transport_handle.h"
#include "gossamer/engine/stop_agreement.h"

namespace gossamer::python {
namespace {

using NoGil = py::call_guard<py::gil_scoped_release>;

/// A StopAgreement with the transport it runs over, which it holds as long as it lives.
class StopHandle {
 public:
  StopHandle(const std::shared_ptr<TransportHandle>& transport, std::int64_t done, bool goes_on)
      : transport_(transport->get()),
        agreement_(std::make_unique<StopAgreement>(*transport_, done,
                                                   goes_on ? Lost::go_on : Lost::error)) {}
  ~StopHandle() {
    const py::gil_scoped_release no_gil;
    if (home_.is_here()) {
      agreement_.reset();
      transport_.reset();
      return;
    }
    abandon(agreement_);
    abandon(transport_);
  }
  StopHandle(const StopHandle&) = delete;
  StopHandle& operator=(const StopHandle&) = delete;

  StopAgreement& get() const { return *agreement_; }

 private:
  const HomeProcess home_;
  std::shared_ptr<Transport> transport_;
  std::unique_ptr<StopAgreement> agreement_;
};

void end_if_parent_asks(int /*signal*/, siginfo_t* told, void* /*context*/) {
  if (told->si_pid == ::getppid()) ::_exit(0);
}

/// For a process that works for its parent and ends with it: of these signals, it listens to the
/// parent's only.
void leave_signals_to_parent(const std::vector<int>& signals) {
  for (const int signal : signals) {
    struct sigaction action = {};
    action.sa_sigaction = end_if_parent_asks;
    action.sa_flags = SA_RESTART | SA_SIGINFO | SA_NOCLDSTOP | SA_NODEFER;
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace

void bind_stopping(py::module_& module) {
  module.def("leave_signals_to_parent", &leave_signals_to_parent, py::arg("signals"), R"(
    In a process that works for its parent: ends when the parent sends one of these, and ignores
    others' ones.)");
  py::class_<StopHandle>(module, "StopAgreement",
                         "One step after which all workers stop; one per transport.")
      .def(py::init<const std::shared_ptr<TransportHandle>&, std::int64_t, bool>(),
           py::arg("transport").none(false), py::arg("done") = 0, py::arg("goes_on") = false,
           "`done`: steps that this worker has done. `goes_on`: without those that are lost.")
      .def(
          "look", [](StopHandle& self, int told) { self.get().look(told); }, NoGil(),
          py::arg("told"),
          "Hears and passes on: the signal that tells this worker to stop, or 0; from any thread.")
      .def(
          "is_last",
          [](StopHandle& self, std::int64_t done, int told) {
            return self.get().is_last(done, told, raise_signals);
          },
          NoGil(), py::arg("done"), py::arg("told"), R"(
        Whether all stop after the `done` steps that this worker has done; waits where that is
        not known yet. To be called between steps. Raises what became of a neighbour without which
        it will not be known.)")
      .def_property_readonly(
          "signal", [](StopHandle& self) { return self.get().signal(); },
          "What this worker, or the one that passed the news on, was told; 0: nothing yet.");
}

}  // namespace gossamer::python
