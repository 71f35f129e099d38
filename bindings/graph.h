#pragma once
/// Schedules as Python holds them: opaque values.

#include <torch/csrc/utils/pybind.h>

namespace gossamer::python {

void bind_graph(pybind11::module_& module);

}  // namespace gossamer::python
