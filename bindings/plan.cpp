#include "bindings/plan.h"

#include <pybind11/stl.h>

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/cluster_file.h"
#include "gossamer/plan/forecast.h"
#include "gossamer/plan/ranking.h"
#include "gossamer/plan/workload_file.h"

namespace py = pybind11;

namespace gossamer::python {
namespace {

struct Scenario {
  ClusterFile cluster;
  Workload workload;
  Target target;
};

Scenario load(const std::string& cluster, const std::string& workload, std::uint64_t seed) {
  Scenario scenario{.cluster = load_cluster(cluster)};
  const WorkloadFile file = load_workload(workload);
  scenario.workload = workload_on(file, scenario.cluster);
  scenario.workload.compute.seed = seed;
  scenario.target = file.target;
  return scenario;
}

Forecast forecast_of(const std::string& method, const std::string& cluster,
                     const std::string& workload, std::int64_t steps, std::uint64_t seed) {
  const Scenario scenario = load(cluster, workload, seed);
  ForecastOptions options;
  if (steps >= 1) options.steps = steps;
  return forecast(scenario.cluster.cluster, scenario.workload, parse_method(method), options);
}

/// A ranking, with what of its cluster a job has to have in common with it.
struct ClusterRanking {
  Ranking ranking;
  ClusterSpec cluster;
};

ClusterRanking ranking_of(const std::string& cluster, const std::string& workload) {
  const Scenario scenario = load(cluster, workload, 0);
  return {.ranking = rank(scenario.cluster.cluster, scenario.workload, scenario.target),
          .cluster = scenario.cluster.cluster};
}

using MethodClass = py::class_<MethodSpec>;

void add_choices(MethodClass& method) {
  method.def_property_readonly("name", [](const MethodSpec& c) { return name_of(c); })
      .def_property_readonly(
          "averages_gradients", [](const MethodSpec& c) { return averages_gradients(c); },
          "Over everybody in every step: ddp and allreduce.")
      .def_readonly("pattern", &MethodSpec::pattern, "A row of the table of patterns; or ddp.")
      .def_property_readonly(
          "pattern_options",
          [](const MethodSpec& c) {
            std::map<std::string, double> options;
            for (const PatternOption& option : c.options) options[option.name] = option.value;
            return options;
          },
          "The pattern's numbers that are not at their defaults.")
      .def_property_readonly(
          "topology", [](const MethodSpec& c) { return c.schedule.topology; }, "Its full name.")
      .def_property_readonly("codec",
                             [](const MethodSpec& c) { return std::string(name_of(c.codec)); })
      .def_property_readonly("update",
                             [](const MethodSpec& c) {
                               return update_of(c) == UpdateAt::backward ? "backward" : "step";
                             })
      .def_property_readonly(
          "late", [](const MethodSpec& c) { return c.late == Late::skip ? "skip" : "wait"; })
      .def_readonly("staleness", &MethodSpec::staleness, "Where it skips late neighbours.")
      .def_readonly("stagger", &MethodSpec::stagger,
                    "Whether bucket b follows the schedule at t + b.");
}

Schedule schedule_on(const MethodSpec& method, std::vector<int> hosts,
                     const std::vector<double>& link_rates, std::uint64_t seed) {
  MethodSpec on_cluster = method;
  on_cluster.schedule.seed = seed;
  on_cluster.schedule.link_rates = link_rates;
  return schedule_of(on_cluster, {std::move(hosts)});
}

void bind_method(py::module_& module) {
  MethodClass method(module, "Method", R"(
    A way to train, by the name that all commands take.

    The name is PATTERN@TOPOLOGY, a topology alone (for cwa), allreduce or ddp. Settings that differ
    from the defaults follow after colons: "atc@ring:lazy:rounds=2", "aer:int8:local=4". ValueError
    for a name that is none.

    Example::

        method = gossamer.Method("aer:int8")
        print(method.pattern, method.topology, method.codec)
        gossip = gossamer.Gossip(model, optimizer, topology=method)
    )");
  method.def(py::init([](const std::string& name) { return parse_method(name); }), py::arg("name"));
  add_choices(method);
  method
      .def("__eq__",
           [](const MethodSpec& a, const py::object& b) {
             return py::isinstance<MethodSpec>(b) && a == b.cast<MethodSpec>();
           })
      .def("__hash__", [](const MethodSpec& c) { return std::hash<std::string>()(name_of(c)); })
      .def("__repr__", [](const MethodSpec& c) { return "Method(\"" + name_of(c) + "\")"; })
      .def("schedule", &schedule_on, py::arg("workers_per_host"), py::kw_only(),
           py::arg("link_rates") = std::vector<double>{}, py::arg("seed") = 0, R"(
        Who averages with whom on these hosts; the rates of the hosts' links, in any unit, are
        for fitted, the seed for random graphs. ValueError for hosts that cannot be served.

        Example::

            schedule = gossamer.Method("atc@ring:rounds=2").schedule([2, 2])
            assert schedule.workers == 4
        )");
}

void bind_forecast(py::module_& module) {
  py::class_<Forecast>(module, "Forecast", "What a method does on a cluster, by simulation.")
      .def_property_readonly("method", [](const Forecast& f) { return name_of(f.candidate); })
      .def_readonly("step_s", &Forecast::step_s, "Mean over workers and steps.")
      .def_readonly("exposed_s", &Forecast::exposed_s,
                    "The part of it in which workers wait for others.")
      .def_readonly(
          "model_s", &Forecast::model_s,
          "``step_s`` by the recursion of the runtime model; NaN where it does not apply.")
      .def_readonly("link_busy", &Forecast::link_busy,
                    "Share of the time in which the busiest direction of a link is full.")
      .def_readonly("bytes_per_host", &Forecast::bytes_per_host,
                    "Sent to other hosts per step, without frames.");
}

void bind_ranking(py::module_& module) {
  py::class_<RankedCandidate>(module, "RankedMethod", "A method and its time to the same loss.")
      .def_property_readonly("method",
                             [](const RankedCandidate& c) { return name_of(c.candidate); })
      .def_readonly("step_s", &RankedCandidate::step_s, "Mean time of a step.")
      .def_readonly("exposed_s", &RankedCandidate::exposed_s,
                    "The part of it in which workers wait for others.")
      .def_property_readonly(
          "steps_ratio", [](const RankedCandidate& c) { return c.steps.ratio; },
          "Steps over those of all-reduce; an estimate unless the workload has a measured one.")
      .def_readonly("total_s", &RankedCandidate::total_s,
                    "To the loss that all-reduce has after its steps.");
  py::class_<ClusterRanking>(module, "Ranking", "Methods by their time to the same loss.")
      .def_property_readonly("recommended",
                             [](const ClusterRanking& r) {
                               const Ranking& ranking = r.ranking;
                               return name_of(ranking.candidates[ranking.recommended].candidate);
                             })
      .def_property_readonly(
          "methods", [](const ClusterRanking& r) { return r.ranking.candidates; },
          "The best first.")
      .def_property_readonly(
          "reasons", [](const ClusterRanking& r) { return r.ranking.reasons; },
          "Sentences: why the recommended one.")
      .def_property_readonly(
          "doubts", [](const ClusterRanking& r) { return r.ranking.doubts; },
          "Sentences: what the answer hangs on.")
      .def_property_readonly(
          "workers_per_host",
          [](const ClusterRanking& r) { return r.cluster.shape().workers_per_host; },
          "Of the cluster.")
      .def_property_readonly(
          "link_rates", [](const ClusterRanking& r) { return link_rates(r.cluster); },
          "Of the cluster's hosts, in bytes per second; empty unless all are limited.");
}

}  // namespace

void bind_plan(py::module_& module) {
  bind_method(module);
  bind_forecast(module);
  bind_ranking(module);
  module.def("forecast", &forecast_of, py::arg("method"), py::arg("cluster"), py::arg("workload"),
             py::kw_only(), py::arg("steps") = 100, py::arg("seed") = 1, R"(
    Simulates a method of ``gossamer simulate`` on a cluster.toml and a workload.toml.

    Raises ValueError for what the files or the method cannot mean, IoError for files that cannot
    be read.

    Example::

        found = gossamer.forecast("aer:bf16", "cluster.toml", "workload.toml")
        print(found.step_s)
    )");
  module.def("rank_methods", &ranking_of, py::arg("cluster"), py::arg("workload"), R"(
    What ``gossamer plan`` says about a cluster.toml and a workload.toml.

    Example::

        ranking = gossamer.rank_methods("cluster.toml", "workload.toml")
        print(ranking.recommended, ranking.reasons)
    )");
}

}  // namespace gossamer::python
