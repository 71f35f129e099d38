#pragma once
/// What a step did, for Python.

#include <torch/csrc/utils/pybind.h>

namespace gossamer::python {

void bind_report(pybind11::module_& module);

}  // namespace gossamer::python
