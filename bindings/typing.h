#pragma once
/// Types that signatures name, beside those of pybind11/typing.h.

#include <pybind11/pybind11.h>
#include <pybind11/typing.h>

#include <memory>
#include <optional>

namespace gossamer::python {

/// An argument that may be None. A null pointer would do, but signatures do not say so of it.
template <class T>
using OrNone = std::optional<std::shared_ptr<T>>;

/// Values by name.
using Record = pybind11::typing::Dict<pybind11::str, pybind11::object>;

}  // namespace gossamer::python
