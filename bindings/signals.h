#pragma once
/// Ctrl-C in the middle of C++.

#include <pybind11/pybind11.h>

namespace gossamer::python {

/// Throws what a signal has raised in Python; for WhileWaiting, so that Ctrl-C ends a wait.
inline void raise_signals() {
  const pybind11::gil_scoped_acquire interpreter;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

}  // namespace gossamer::python
