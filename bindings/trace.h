#pragma once
/// Recorders and the files of their traces, for Python.

#include <torch/csrc/utils/pybind.h>

namespace gossamer::python {

void bind_trace(py::module_& module);

}  // namespace gossamer::python
