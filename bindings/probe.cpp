#include "bindings/probe.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/signals.h"
#include "bindings/transport.h"
#include "gossamer/base/cluster_file.h"
#include "gossamer/model/link_load.h"
#include "gossamer/plan/workload_file.h"
#include "gossamer/probe/compute.h"
#include "gossamer/probe/links.h"
#include "gossamer/transport/threads.h"

namespace gossamer::python {
namespace {

/// Seconds of forward, backward and update of each step.
using Steps = std::vector<std::tuple<double, double, double>>;
/// The mean over all workers of a number of theirs; they wait for each other.
using Mean = std::function<double(double)>;

/// Returns the texts of cluster.toml and workload.toml.
std::pair<std::string, std::string> probe(const std::shared_ptr<TransportHandle>& handle,
                                          std::vector<int> workers_per_host,
                                          const std::function<Steps(Mean)>& time_steps,
                                          std::vector<std::int64_t> buckets,
                                          const std::string& optimizer, double timeout_s) {
  const std::shared_ptr<Transport> transport =
      handle ? handle->get() : std::move(make_threads_transports({.hosts = {HostSpec{}}})[0]);
  ExchangeRunner runner(*transport, timeout_s, raise_signals);
  Collectives collectives(runner, HostShape{std::move(workers_per_host)},
                          transport->describe().rank);
  ClusterFile cluster;
  Steps steps;
  const Mean mean = [&collectives](double value) {
    const py::gil_scoped_release no_gil;
    collectives.mean({&value, 1});
    return value;
  };
  {
    const py::gil_scoped_release no_gil;
    cluster.cluster = probe_links(runner, collectives, {.overhead = kEthernetOverhead});
  }
  steps = time_steps(mean);
  std::vector<TimedStep> timed;
  for (const auto& [forward, backward, update] : steps) {
    timed.push_back({forward, backward, update});
  }
  const py::gil_scoped_release no_gil;
  const ProbedCompute compute = merge_steps(collectives, timed);
  cluster.speeds = compute.speeds;
  WorkloadFile workload;
  workload.workload = {.buckets = std::move(buckets),
                       .compute = compute.times,
                       .forward_share = compute.forward_share,
                       .update_s = compute.update_s};
  workload.target.optimizer = optimizer;
  return {to_toml(cluster), to_toml(workload)};
}

}  // namespace

void bind_probe(py::module_& module) {
  module.def("probe", &probe, py::arg("transport"), py::arg("workers_per_host"),
             py::arg("time_steps"), py::kw_only(), py::arg("buckets"), py::arg("optimizer"),
             py::arg("timeout_s"),
             "The texts of cluster.toml and workload.toml, from measurements. Collective.");
}

}  // namespace gossamer::python
