#pragma once
/// How the processes of a job find each other, and what they must know before, for Python.

#include <torch/csrc/utils/pybind.h>

namespace gossamer::python {

void bind_meeting(pybind11::module_& module);

}  // namespace gossamer::python
