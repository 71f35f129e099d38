#pragma once
/// What `gossamer theory` says, for Python.

#include <pybind11/pybind11.h>

namespace gossamer::python {

void bind_theory(pybind11::module_& module);

}  // namespace gossamer::python
