#pragma once
/// The table of patterns, and the numbers of a step, for Python.

#include <pybind11/pybind11.h>

namespace gossamer::python {

void bind_algo(pybind11::module_& module);

}  // namespace gossamer::python
