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

void bind_schedule(py::module_& module) {
  py::class_<Schedule>(module, "Schedule", R"(
    Which workers average with which, step by step.

    Example::

        schedule = gossamer.make_schedule("ring", [4])
        print(schedule.name, schedule.period, schedule.workers)
    )")
      .def_readonly("name", &Schedule::name)
      .def_readonly("period", &Schedule::period, "Rounds until it repeats; 0: it does not.")
      .def_property_readonly("workers", [](const Schedule& s) { return s.shape.workers(); })
      .def_property_readonly("workers_per_host",
                             [](const Schedule& s) { return s.shape.workers_per_host; })
      .def_readonly(
          "loss_driven", &Schedule::loss_driven,
          "Whether it follows the loss, which every step must say: ``gossip.observe(loss)``.")
      .def("on_hosts", &on_hosts, py::arg("workers_per_host"), R"(
        The same rounds for as many workers, who are elsewhere.

        Example::

            schedule = gossamer.make_schedule("ring", [4]).on_hosts([2, 2])
            assert schedule.workers_per_host == [2, 2]
        )")
      .def("matrix", &matrix, py::arg("t"), R"(
        W of round t: row i has the weights with which worker i takes what each worker sent.

        ValueError for a negative t.

        Example::

            w = gossamer.make_schedule("complete", [2]).matrix(0)
            assert w == [[0.5, 0.5], [0.5, 0.5]]
        )")
      .def("elements_between_hosts", &elements_between_hosts, py::arg("t"), py::arg("elements"),
           py::kw_only(), py::arg("finished_averages") = false, R"(
        By host: what its workers send to other hosts, and receive from them, in round t.

        Counted in the plans for a payload of ``elements``, the same for every worker.
        ``finished_averages``: the plans by which gradients are averaged. ValueError for a negative
        t or number of elements.

        Example::

            ring = gossamer.make_schedule("ring", [1, 1, 1])
            assert ring.elements_between_hosts(0, 100) == [(200, 200)] * 3
        )");
}

void bind_modifiers(py::module_& module) {
  module.def(
      "make_schedule", &schedule_of, py::arg("topology"), py::arg("workers_per_host"),
      py::kw_only(), py::arg("seed") = 0, py::arg("degree") = 1, py::arg("rounds_per_step") = 1,
      py::arg("local_steps") = 1, py::arg("global_average_every") = 0, py::arg("lazy") = false,
      py::arg_v("link_rates", std::vector<double>(), "()"), py::arg("adaptive_average") = 0, R"(
    The schedule of a topology of the table, or of a file of matrices, NAME.json, with modifiers.

    ``lazy`` mixes with (I + W)/2; ``global_average_every`` 0 is never. ``adaptive_average`` is the
    first distance between global averages whose distance then follows the loss (AGA); every step
    must say it, see ``Gossip.observe``. ``link_rates``, for ``"fitted"``, are those of the hosts'
    links in any unit. ValueError for a name or a size that cannot be served, IoError for a file
    that cannot be read.

    Example::

        schedule = gossamer.make_schedule("ring", [4, 4], global_average_every=8)
        lazy = gossamer.make_schedule("ring", [2, 2], lazy=True)
    )");
  module.def("modified_schedule", &modified_by, py::arg("schedule"), py::kw_only(),
             py::arg("rounds_per_step") = 1, py::arg("local_steps") = 1,
             py::arg("global_average_every") = 0, py::arg("lazy") = false,
             py::arg("adaptive_average") = 0, "The schedule with modifiers.");
}

}  // namespace

void bind_graph(py::module_& module) {
  bind_schedule(module);
  bind_modifiers(module);
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
      py::arg("path"), R"(
    The name of a file's schedule, with a digest of its weights. Raises IoError or ValueError.)");
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
      R"(
    The names that ``make_schedule`` takes.

    Example::

        assert "ring" in gossamer.topology_names()
    )");
}

}  // namespace gossamer::python
