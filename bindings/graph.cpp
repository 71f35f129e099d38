#include "bindings/graph.h"

#include <string>
#include <vector>

#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"

namespace gossamer::python {
namespace {

Schedule make_schedule(const std::string& topology, const std::vector<int>& workers_per_host,
                       std::uint64_t seed, int degree, int rounds_per_step, int local_steps,
                       int global_average_every, bool is_lazy) {
  Schedule schedule =
      make_topology(topology, {.shape = {workers_per_host}, .seed = seed, .degree = degree});
  if (is_lazy) schedule = lazy(std::move(schedule));
  if (rounds_per_step != 1) schedule = with_rounds_per_step(std::move(schedule), rounds_per_step);
  if (global_average_every != 0) {
    schedule = with_global_average(std::move(schedule), global_average_every);
  }
  if (local_steps != 1) schedule = with_local_steps(std::move(schedule), local_steps);
  return schedule;
}

}  // namespace

void bind_graph(py::module_& module) {
  py::class_<Schedule>(module, "Schedule", "Which workers average with which, step by step.")
      .def_readonly("name", &Schedule::name)
      .def_readonly("period", &Schedule::period, "Rounds until it repeats; 0: it does not.")
      .def_property_readonly("workers", [](const Schedule& s) { return s.shape.workers(); })
      .def_property_readonly("workers_per_host",
                             [](const Schedule& s) { return s.shape.workers_per_host; });
  module.def("make_schedule", &make_schedule, py::arg("topology"), py::arg("workers_per_host"),
             py::kw_only(), py::arg("seed") = 0, py::arg("degree") = 1,
             py::arg("rounds_per_step") = 1, py::arg("local_steps") = 1,
             py::arg("global_average_every") = 0, py::arg("lazy") = false,
             "The schedule of a topology of the table, with modifiers. ValueError for a name or a "
             "size that cannot be served.");
  module.def(
      "alone_schedule", [](std::vector<int> hosts) { return alone_schedule({std::move(hosts)}); },
      py::arg("workers_per_host"), "Nobody mixes with anybody.");
  module.def(
      "topology_names",
      [] {
        std::vector<std::string> names;
        for (const Topology& topology : topologies()) names.emplace_back(topology.name);
        return names;
      },
      "The names that make_schedule() takes.");
}

}  // namespace gossamer::python
