#pragma once
/// Gossamer's errors as Python exceptions.

#include <torch/csrc/utils/pybind.h>

namespace gossamer::python {

/// Adds TransportError and IoError; std::invalid_argument is a ValueError anyway.
void bind_errors(pybind11::module_& module);

}  // namespace gossamer::python
