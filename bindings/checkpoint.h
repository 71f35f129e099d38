#pragma once
/// Checkpoints for Python: the folder that appears whole or not at all, and the files in it.

#include <torch/csrc/utils/pybind.h>

namespace gossamer::python {

void bind_checkpoint(py::module_& module);

}  // namespace gossamer::python
