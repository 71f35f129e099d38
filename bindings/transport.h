#pragma once
/// Python's view of transports: tensors in, requests out; nothing blocks with the interpreter held.

#include <torch/csrc/utils/pybind.h>

#include "gossamer/torch/c10d/c10d_transport.h"

namespace gossamer::python {

/// From {peer: process group}; a group of two, or one in which everybody has their own rank.
C10dOptions c10d_options(int rank, int workers, const pybind11::dict& groups);

void bind_transport(pybind11::module_& module);

}  // namespace gossamer::python
