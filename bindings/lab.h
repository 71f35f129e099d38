#pragma once
/// Virtual workers of the lab, for Python.

#include <pybind11/pybind11.h>

namespace gossamer::python {

void bind_lab(pybind11::module_& module);

}  // namespace gossamer::python
