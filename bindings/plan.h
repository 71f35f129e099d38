#pragma once
/// What `gossamer simulate` and `gossamer plan` say, for Python.

#include <pybind11/pybind11.h>

namespace gossamer::python {

void bind_plan(pybind11::module_& module);

}  // namespace gossamer::python
