#include "bindings/algo.h"

#include <pybind11/stl.h>
#include <pybind11/typing.h>

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

py::typing::List<Pattern> table() {
  py::typing::List<Pattern> rows;
  for (const Pattern& row : patterns()) {
    rows.append(py::cast(&row, py::return_value_policy::reference));
  }
  return rows;
}

}  // namespace

void bind_algo(py::module_& module) {
  bind_hyper(module);
  py::class_<Pattern>(module, "Pattern", "A row of the table of patterns.")
      .def_property_readonly("name", [](const Pattern& p) { return std::string(p.name); })
      .def_property_readonly("summary", [](const Pattern& p) { return std::string(p.summary); })
      .def_property_readonly(
          "optimizers", [](const Pattern& p) { return strings(p.optimizers); },
          "Those that it goes with; empty: all.")
      .def_readonly(
          "own_step", &Pattern::own_step,
          "Whether it goes with optimizer \"none\" on parameters that something else has stepped.")
      .def_readonly("averages_first", &Pattern::averages_first,
                    "Whether gradients can be averaged before such an optimizer steps.")
      .def_property_readonly(
          "options", [](const Pattern& p) { return strings(p.options); },
          "The attributes of Hyper that it reads beside the optimizer's.")
      .def_property_readonly("kept_state", &kept_state,
                             "By name the state vectors that a step hands on to the next.")
      .def_property_readonly("mixes_momentum",
                             [](const Pattern& p) { return sends(p, Payload::momentum); })
      .def_readonly("above", &Pattern::above,
                    "Where there is a condition on eigenvalues: all must be above this.")
      .def("unmet_condition", &unmet, py::arg("optimizer"), py::arg("schedule"), py::arg("hyper"),
           R"(
        The first that is not met: optimizer, doubly_stochastic, static_symmetric, eigenvalues,
        outer_steps or global_averages; or none.)");
  module.def("patterns", &table, "The table.");
}

}  // namespace gossamer::python
