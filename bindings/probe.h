#pragma once
/// What a running job measures of its links and of its own computing, for Python.

#include <torch/csrc/utils/pybind.h>

namespace gossamer::python {

void bind_probe(pybind11::module_& module);

}  // namespace gossamer::python
