#include "bindings/algo.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gossamer/algo/pattern.h"

namespace gossamer::python {
namespace {

namespace py = pybind11;

std::vector<std::string> strings(std::span<const std::string_view> names) {
  return {names.begin(), names.end()};
}

bool sends(const Pattern& pattern, Payload payload) {
  return std::ranges::find(pattern.payloads, payload) != pattern.payloads.end();
}

std::map<std::string, int> kept_state(const Pattern& pattern) {
  std::map<std::string, int> kept;
  for (std::size_t k = 0; k < pattern.state.size(); ++k) {
    kept.emplace(pattern.state[k], static_cast<int>(k));
  }
  return kept;
}

std::string unmet(const Pattern& pattern, const std::string& optimizer, const Schedule& schedule,
                  const Hyper& hyper) {
  switch (unmet_condition(pattern, optimizer, schedule, {&hyper, 1})) {
    case Condition::none:
      return "none";
    case Condition::optimizer:
      return "optimizer";
    case Condition::doubly_stochastic:
      return "doubly_stochastic";
    case Condition::outer_steps:
      return "outer_steps";
    case Condition::global_averages:
      return "global_averages";
    case Condition::static_symmetric:
      return "static_symmetric";
    case Condition::eigenvalues:
      return "eigenvalues";
  }
  return "none";
}

void bind_hyper(py::module_& module) {
  py::class_<Hyper>(module, "Hyper", "One parameter group's settings for the coming step.")
      .def(py::init<>())
      .def_readwrite("lr", &Hyper::lr)
      .def_readwrite("weight_decay", &Hyper::weight_decay)
      .def_readwrite("beta1", &Hyper::beta1)
      .def_readwrite("beta2", &Hyper::beta2)
      .def_readwrite("eps", &Hyper::eps)
      .def_readwrite("noise_share", &Hyper::noise_share)
      .def_readwrite("momentum", &Hyper::momentum)
      .def_readwrite("dampening", &Hyper::dampening)
      .def_readwrite("nesterov", &Hyper::nesterov)
      .def_readwrite("accumulate", &Hyper::accumulate)
      .def_readwrite("consensus", &Hyper::consensus)
      .def_readwrite("outer_every", &Hyper::outer_every)
      .def_readwrite("outer_momentum", &Hyper::outer_momentum)
      .def_readwrite("outer_lr", &Hyper::outer_lr)
      .def_readwrite("grad_scale", &Hyper::grad_scale);
}

}  // namespace

void bind_algo(py::module_& module) {
  bind_hyper(module);
  py::class_<Pattern>(module, "Pattern", "A row of the table of patterns.")
      .def_property_readonly("name", [](const Pattern& p) { return std::string(p.name); })
      .def_property_readonly("summary", [](const Pattern& p) { return std::string(p.summary); })
      .def_property_readonly("optimizers", [](const Pattern& p) { return strings(p.optimizers); })
      .def_readonly("own_step", &Pattern::own_step)
      .def_property_readonly("options", [](const Pattern& p) { return strings(p.options); })
      .def_property_readonly("kept_state", &kept_state)
      .def_property_readonly("mixes_momentum",
                             [](const Pattern& p) { return sends(p, Payload::momentum); })
      .def_readonly("above", &Pattern::above)
      .def("unmet_condition", &unmet, py::arg("optimizer"), py::arg("schedule"), py::arg("hyper"),
           "The first condition that is not met, or none.");
  module.def(
      "patterns",
      [] {
        py::list rows;
        for (const Pattern& row : patterns()) {
          rows.append(py::cast(&row, py::return_value_policy::reference));
        }
        return rows;
      },
      "The table.");
}

}  // namespace gossamer::python
