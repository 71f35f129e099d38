#pragma once
/// Workers that agree after which step to stop, for Python.

#include <torch/csrc/utils/pybind.h>

namespace gossamer::python {

void bind_stopping(py::module_& module);

}  // namespace gossamer::python
