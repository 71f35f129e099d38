/// Gossamer's errors as Python exceptions.

#include "bindings/errors.h"

#include "gossamer/base/errors.h"

namespace gossamer::python {
namespace {

PyObject* transport_error = nullptr;  // as long as the module, which is for ever
PyObject* io_error = nullptr;

void raise_transport_error(const TransportError& error) {
  const TransportError::Details& details = error.details();
  py::object raised = py::handle(transport_error)(error.what());
  raised.attr("rank") = details.rank;
  raised.attr("peer") = details.unheard.value_or(details.peer);
  raised.attr("operation") = details.operation;
  raised.attr("elapsed_s") = details.elapsed_s;
  raised.attr("reason") = details.reason;
  PyErr_SetObject(transport_error, raised.ptr());
}

PyObject* add_exception(py::module_& module, const char* name, const char* doc, PyObject* base) {
  const std::string full = std::string("gossamer.") + name;
  PyObject* type = PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr);
  if (type == nullptr) throw py::error_already_set();
  module.add_object(name, type);
  return type;
}

}  // namespace

void bind_errors(py::module_& module) {
  transport_error = add_exception(module, "TransportError", R"(
    A peer or a link did not do its part.

    ``rank`` is this worker's, ``peer`` that of the other one: where a deadline has passed, of the
    one that was not heard meanwhile, for which perhaps all wait. ``reason`` says more.

    Example::

        try:
            optimizer.step()
        except gossamer.TransportError as error:
            print(error.rank, error.peer, error.reason)
    )",
                                  PyExc_RuntimeError);
  io_error = add_exception(module, "IoError", R"(
    A file, a folder or a device did not do its part.

    Example::

        try:
            gossip.load("nowhere")
        except gossamer.IoError as error:
            print(error)
    )",
                           PyExc_OSError);
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const TransportError& error) {
      raise_transport_error(error);
    } catch (const IoError& error) {
      PyErr_SetString(io_error, error.what());
    }
  });
}

}  // namespace gossamer::python
