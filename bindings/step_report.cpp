#include "bindings/step_report.h"

#include <pybind11/stl.h>

#include "gossamer/engine/options.h"

namespace gossamer::python {

namespace py = pybind11;

void bind_report(py::module_& module) {
  py::class_<LostPeer>(module, "LostPeer", "A worker that this one goes on without.")
      .def_readonly("rank", &LostPeer::peer)
      .def_readonly("why", &LostPeer::why);
  py::class_<PeerBack>(module, "PeerBack", "A worker that has come back.")
      .def_readonly("rank", &PeerBack::peer)
      .def_readonly("steps", &PeerBack::steps, "Its edges are on from the step after these.");
  py::class_<StepReport>(module, "StepReport", "What a step did on this worker.")
      .def_readonly("step", &StepReport::step)
      .def_readonly("grad_norm", &StepReport::grad_norm,
                    "Of all gradients; 0 if not computed, as where they were checked on arrival.")
      .def_readonly("exposed_s", &StepReport::exposed_s, "Seconds spent waiting for other workers.")
      .def_readonly("skipped", &StepReport::skipped,
                    "Neighbours' payloads, by bucket, that the step went on without.")
      .def_readonly("lost", &StepReport::lost, "Workers that were lost in it.")
      .def_readonly("back", &StepReport::back, "Those that said in it when they come back.")
      .def_readonly("among", &StepReport::among,
                    "Ranks that rounds are among from now on, where they have been formed anew.")
      .def_readonly("hidden_s", &StepReport::hidden_s,
                    "Seconds in which payloads were under way without being waited for.")
      .def_readonly("distance", &StepReport::distance,
                    "The norm of what mixing moved the parameters by.");
}

}  // namespace gossamer::python
