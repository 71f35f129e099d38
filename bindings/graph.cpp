#include "bindings/graph.h"

#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/graph/schedule_file.h"
#include "gossamer/graph/schedule_spec.h"
#include "gossamer/graph/topology.h"
#include "gossamer/model/link_load.h"

namespace gossamer::python {
namespace {

Schedule schedule_of(const std::string& topology, const std::vector<int>& workers_per_host,
                     std::uint64_t seed, int degree, int rounds_per_step, int local_steps,
                     int global_average_every, bool is_lazy, const std::vector<double>& link_rates,
                     int adaptive_average) {
  return make_schedule({.topology = topology,
                        .seed = seed,
                        .degree = degree,
                        .link_rates = link_rates,
                        .lazy = is_lazy,
                        .rounds_per_step = rounds_per_step,
                        .local_steps = local_steps,
                        .global_average = global_average_every,
                        .adaptive_average = adaptive_average},
                       {workers_per_host});
}

Schedule modified_by(Schedule schedule, int rounds_per_step, int local_steps,
                     int global_average_every, bool is_lazy, int adaptive_average) {
  return modified(std::move(schedule), {.lazy = is_lazy,
                                        .rounds_per_step = rounds_per_step,
                                        .local_steps = local_steps,
                                        .global_average = global_average_every,
                                        .adaptive_average = adaptive_average});
}

/// The same rounds for as many workers, who are elsewhere.
Schedule on_hosts(Schedule schedule, std::vector<int> workers_per_host) {
  HostShape shape{std::move(workers_per_host)};
  check_host_shape(shape, "schedule");
  check_argument(
      "schedule", shape.workers() == schedule.shape.workers(),
      "hosts must have the schedule's " + std::to_string(schedule.shape.workers()) + " workers",
      std::to_string(shape.workers()));
  schedule.shape = std::move(shape);
  return schedule;
}

void refuse_negative(const std::string& name, std::int64_t value) {
  if (value >= 0) return;
  fail_argument({.place = "schedule",
                 .what = name + " must not be negative, got " + std::to_string(value),
                 .remedy = "give 0 or more"});
}

/// W of round t, row by row.
std::vector<std::vector<double>> matrix(const Schedule& schedule, std::int64_t t) {
  refuse_negative("t", t);
  const Round round = round_at(schedule, t);
  const auto workers = static_cast<std::size_t>(round.workers);
  std::vector<std::vector<double>> rows(workers, std::vector<double>(workers));
  for (std::size_t i = 0; i < workers; ++i) {
    for (const Entry& entry : row_of(round, static_cast<int>(i))) {
      rows[i][static_cast<std::size_t>(entry.worker)] = entry.weight;
    }
  }
  return rows;
}

using SentAndReceived = std::pair<std::int64_t, std::int64_t>;

/// By host: elements sent to other hosts and received from them, by all its workers in round t.
std::vector<SentAndReceived> elements_between_hosts(const Schedule& schedule, std::int64_t t,
                                                    std::int64_t elements, bool finished_averages) {
  refuse_negative("t", t);
  refuse_negative("elements", elements);
  const ExchangedPayload payload{.elements = elements,
                                 .plan = {.finished_averages = finished_averages}};
  constexpr auto kElementBytes = static_cast<std::int64_t>(size_of(DType::f32));
  std::vector<SentAndReceived> by_host;
  for (const HostLoad& load : host_loads(round_at(schedule, t), schedule.shape, payload)) {
    by_host.emplace_back(load.sent_bytes / kElementBytes, load.received_bytes / kElementBytes);
  }
  return by_host;
}

}  // namespace

void bind_graph(py::module_& module) {
  py::class_<Schedule>(module, "Schedule", "Which workers average with which, step by step.")
      .def_readonly("name", &Schedule::name)
      .def_readonly("period", &Schedule::period, "Rounds until it repeats; 0: it does not.")
      .def_readonly("loss_driven", &Schedule::loss_driven,
                    "Whether it follows the loss, which every step must say.")
      .def_property_readonly("workers", [](const Schedule& s) { return s.shape.workers(); })
      .def_property_readonly("workers_per_host",
                             [](const Schedule& s) { return s.shape.workers_per_host; })
      .def("on_hosts", &on_hosts, py::arg("workers_per_host"),
           "The same rounds for as many workers, who are elsewhere.")
      .def("matrix", &matrix, py::arg("t"),
           "W of round t: row i has what i takes from each worker.")
      .def("elements_between_hosts", &elements_between_hosts, py::arg("t"), py::arg("elements"),
           py::kw_only(), py::arg("finished_averages") = false,
           "By host what it sends to and receives from other hosts in round t, for a payload.");
  module.def("make_schedule", &schedule_of, py::arg("topology"), py::arg("workers_per_host"),
             py::kw_only(), py::arg("seed") = 0, py::arg("degree") = 1,
             py::arg("rounds_per_step") = 1, py::arg("local_steps") = 1,
             py::arg("global_average_every") = 0, py::arg("lazy") = false,
             py::arg_v("link_rates", std::vector<double>(), "()"), py::arg("adaptive_average") = 0,
             "The schedule of a topology of the table, or of a file NAME.json, with modifiers. "
             "ValueError for a name or a size that cannot be served.");
  module.def("modified_schedule", &modified_by, py::arg("schedule"), py::kw_only(),
             py::arg("rounds_per_step") = 1, py::arg("local_steps") = 1,
             py::arg("global_average_every") = 0, py::arg("lazy") = false,
             py::arg("adaptive_average") = 0, "The schedule with modifiers.");
  module.def(
      "schedule_from_matrices",
      [](const std::vector<Matrix>& matrices, std::vector<int> hosts) {
        return schedule_from_matrices(matrices, {std::move(hosts)});
      },
      py::arg("matrices"), py::arg("workers_per_host"),
      "W of each round, in turn. ValueError for weights that do not sum to 1.");
  module.def("is_schedule_file", &is_schedule_file, py::arg("topology"),
             "Whether a topology of this name is read from a file.");
  module.def(
      "name_in_file",
      [](const std::string& path) { return schedule_from_file(path, shape_in_file(path)).name; },
      py::arg("path"), "The name of a file's schedule, with a digest of its weights.");
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
