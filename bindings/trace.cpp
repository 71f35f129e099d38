#include "bindings/trace.h"

#include <memory>
#include <string>
#include <vector>

#include "gossamer/engine/trace_file.h"

namespace gossamer::python {

void bind_trace(py::module_& module) {
  py::class_<Recorder, std::shared_ptr<Recorder>>(module, "Recorder",
                                                  "What a worker did in its last ``steps`` steps.")
      .def(py::init<int, std::int64_t>(), py::arg("rank"), py::arg("steps"))
      .def("resume", &Recorder::resume, "What was done until now belongs to no step.")
      .def(
          "write",
          [](const Recorder& self, const std::string& folder, int rank, std::vector<int> hosts) {
            const Recorder* const own = &self;
            write_trace_file(trace_file_of(folder, rank), {&own, 1}, {std::move(hosts)});
          },
          py::call_guard<py::gil_scoped_release>(), py::arg("folder"), py::arg("rank"),
          py::arg("workers_per_host"), R"(
        Writes trace.rank<rank>.json.gz, whole or not at all; nothing before an engine that it
        was given to has started. Raises IoError.)");
  module.def(
      "remove_traces", [](const std::string& folder) { remove_traces(folder); }, py::arg("folder"),
      "Removes what traces a run has left in its folder.");
}

}  // namespace gossamer::python
