#pragma once
/// The engine over tensors, as Python holds it.

#include <torch/csrc/utils/pybind.h>

namespace gossamer::python {

void bind_engine(pybind11::module_& module);

}  // namespace gossamer::python
