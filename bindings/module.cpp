/// The Python extension gossamer._core: one file of this folder for each layer.

#include <torch/version.h>

#include "bindings/algo.h"
#include "bindings/checkpoint.h"
#include "bindings/engine.h"
#include "bindings/errors.h"
#include "bindings/graph.h"
#include "bindings/lab.h"
#include "bindings/meeting.h"
#include "bindings/plan.h"
#include "bindings/probe.h"
#include "bindings/stopping.h"
#include "bindings/theory.h"
#include "bindings/trace.h"
#include "bindings/transport.h"
#include "gossamer/kernels/isa.h"

PYBIND11_MODULE(_core, module) {
  module.doc() =
      "The C++ side of gossamer. __torch_version__ is the torch whose headers it was compiled "
      "with.";
  py::module_::import("torch");  // its types must be known before ours
  gossamer::python::bind_errors(module);
  gossamer::python::bind_transport(module);
  gossamer::python::bind_meeting(module);
  gossamer::python::bind_checkpoint(module);
  gossamer::python::bind_stopping(module);
  gossamer::python::bind_graph(module);
  gossamer::python::bind_plan(module);
  gossamer::python::bind_theory(module);
  gossamer::python::bind_probe(module);
  gossamer::python::bind_trace(module);
  gossamer::python::bind_algo(module);
  gossamer::python::bind_engine(module);
  gossamer::python::bind_lab(module);
  module.def("isa_name", &gossamer::isa_name, R"(
    The instruction set of the kernels: ref, avx2 or avx512.

    ValueError where GOSSAMER_ISA names one that does not exist or that this machine lacks.
    )");
  module.attr("__torch_version__") = TORCH_VERSION;
}
