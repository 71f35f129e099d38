#include "bindings/plan.h"

#include <pybind11/stl.h>

#include <string>
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
  return forecast(scenario.cluster.cluster, scenario.workload, parse_candidate(method), options);
}

Ranking ranking_of(const std::string& cluster, const std::string& workload) {
  const Scenario scenario = load(cluster, workload, 0);
  return rank(scenario.cluster.cluster, scenario.workload, scenario.target);
}

}  // namespace

void bind_plan(py::module_& module) {
  py::class_<Forecast>(module, "Forecast", "What a method does on a cluster, by simulation.")
      .def_property_readonly("method", [](const Forecast& f) { return name_of(f.candidate); })
      .def_readonly("step_s", &Forecast::step_s, "Mean over workers and steps.")
      .def_readonly("exposed_s", &Forecast::exposed_s, "Of it, waiting for others.")
      .def_readonly("model_s", &Forecast::model_s, "step_s by the recursion; may be NaN.")
      .def_readonly("link_busy", &Forecast::link_busy, "Share of the time, busiest direction.")
      .def_readonly("bytes_per_host", &Forecast::bytes_per_host, "Sent per step.");
  py::class_<RankedCandidate>(module, "RankedMethod", "A method and its time to the same loss.")
      .def_property_readonly("method",
                             [](const RankedCandidate& c) { return name_of(c.candidate); })
      .def_readonly("step_s", &RankedCandidate::step_s, "Mean time of a step.")
      .def_readonly("exposed_s", &RankedCandidate::exposed_s, "Of it, waiting for others.")
      .def_property_readonly("steps_ratio", [](const RankedCandidate& c) { return c.steps.ratio; })
      .def_readonly("total_s", &RankedCandidate::total_s, "To the loss of all-reduce's steps.");
  py::class_<Ranking>(module, "Ranking", "Methods by their time to the same loss.")
      .def_property_readonly(
          "recommended",
          [](const Ranking& r) { return name_of(r.candidates[r.recommended].candidate); })
      .def_readonly("methods", &Ranking::candidates, "The best first.")
      .def_readonly("reasons", &Ranking::reasons, "Sentences: why the recommended one.")
      .def_readonly("doubts", &Ranking::doubts, "Sentences: what the answer hangs on.");
  module.def("forecast", &forecast_of, py::arg("method"), py::arg("cluster"), py::arg("workload"),
             py::kw_only(), py::arg("steps") = 100, py::arg("seed") = 1,
             "Simulates a method of `gossamer simulate` on a cluster.toml and a workload.toml.");
  module.def("rank_methods", &ranking_of, py::arg("cluster"), py::arg("workload"),
             "What `gossamer plan` says about a cluster.toml and a workload.toml.");
}

}  // namespace gossamer::python
