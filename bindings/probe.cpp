#include "bindings/probe.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/signals.h"
#include "bindings/transport_handle.h"
#include "bindings/typing.h"
#include "gossamer/base/cluster_file.h"
#include "gossamer/model/link_load.h"
#include "gossamer/plan/forecast.h"
#include "gossamer/plan/workload_file.h"
#include "gossamer/probe/compute.h"
#include "gossamer/probe/links.h"
#include "gossamer/torch/devices/device_link.h"
#include "gossamer/transport/threads.h"

namespace gossamer::python {
namespace {

/// Seconds of forward, backward and update of each step.
using Steps = std::vector<std::tuple<double, double, double>>;
/// The mean over all workers of a number of theirs; they wait for each other.
using Mean = std::function<double(double)>;

/// Seconds of PyTorch's all-reduce of so many fp32 elements.
using TimeAllReduce = std::function<double(std::int64_t)>;

/// Bytes per second and seconds of latency between this worker's device and the host's memory.
using Device = std::function<std::pair<double, double>()>;

// About how long a transfer or an all-reduce that counts takes.
constexpr double kLeastTransfer_s = 1e-3;
constexpr double kMostTransfer_s = 1;
constexpr std::int64_t kLeastElements = 1 << 14;

/// Of the workload's elements, as many as links of this kind carry in so many seconds.
std::int64_t elements_to_reduce(const ClusterSpec& cluster, const Workload& workload,
                                double seconds) {
  const std::int64_t all = elements_of(workload);
  const double whole_s = ddp_allreduce_s(cluster, all);
  const double part = std::min(1.0, seconds / std::max(whole_s, 1e-9));
  return std::clamp(static_cast<std::int64_t>(part * static_cast<double>(all)),
                    std::min(all, kLeastElements), all);
}

/// Returns the texts of cluster.toml and workload.toml.
std::pair<std::string, std::string> probe(const OrNone<TransportHandle>& handle,
                                          std::vector<int> workers_per_host,
                                          const std::function<Steps(Mean)>& time_steps,
                                          const TimeAllReduce& time_allreduce,
                                          std::vector<std::int64_t> buckets,
                                          const std::string& optimizer, double seconds,
                                          double timeout_s, const Device& device) {
  const std::shared_ptr<Transport> transport =
      handle ? (*handle)->get() : std::move(make_threads_transports({.hosts = {HostSpec{}}})[0]);
  ExchangeRunner runner(*transport, timeout_s, raise_signals);
  Collectives collectives(runner,
                          {HostShape{std::move(workers_per_host)}, transport->describe().rank});
  const double transfer_s = std::clamp(seconds / 10, kLeastTransfer_s, kMostTransfer_s);
  ClusterFile cluster;
  Steps steps;
  const Mean mean = [&collectives](double value) {
    const py::gil_scoped_release no_gil;
    collectives.mean({&value, 1});
    return value;
  };
  {
    const py::gil_scoped_release no_gil;
    cluster.cluster =
        probe_links(runner, collectives, {.transfer_s = transfer_s, .overhead = kEthernetOverhead});
    collectives.barrier();
  }
  const auto [device_rate, device_latency_s] = device();
  {
    const py::gil_scoped_release no_gil;
    merge_devices(collectives, {device_rate, device_latency_s}, cluster.cluster);
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
  if (cluster.cluster.hosts.size() > 1) {
    const std::int64_t elements =
        elements_to_reduce(cluster.cluster, workload.workload, transfer_s);
    double taken_s = 0;
    {
      const py::gil_scoped_acquire gil;
      taken_s = time_allreduce(elements);
    }
    collectives.mean({&taken_s, 1});
    workload.workload.ddp_link_share = ddp_link_share(cluster.cluster, elements, taken_s);
  }
  return {to_toml(cluster), to_toml(workload)};
}

/// Bytes per second out and in, and seconds.
std::tuple<double, double, double> device_link(const std::string& device) {
  const DeviceLink link = measure_device_link(c10::Device(device));
  return {link.out_bytes_per_s, link.in_bytes_per_s, link.latency_s};
}

}  // namespace

void bind_probe(py::module_& module) {
  module.def("measure_device_link", &device_link, py::arg("device"),
             py::call_guard<py::gil_scoped_release>(), R"(
    How fast a device and pinned memory of the host reach each other.

    Returns bytes per second from the device, bytes per second to it, and seconds of the smallest
    copy, each the best of a few. ``device`` is a word of torch, such as ``"cuda:0"``. RuntimeError
    for what fails there.
    )");
  module.def("probe", &probe, py::arg("transport"), py::arg("workers_per_host"),
             py::arg("time_steps"), py::arg("time_allreduce"), py::kw_only(), py::arg("buckets"),
             py::arg("optimizer"), py::arg("seconds"), py::arg("timeout_s"), py::arg("device"), R"(
    The texts of cluster.toml and workload.toml, from measurements. Collective.

    First the links are measured, in transfers of about a tenth of ``seconds``, at most 1 s. Then
    ``device`` gives bytes per second and latency, in seconds, of copies between the device of this
    worker and the host's memory: infinite and 0 where there is none. All workers call it at once.
    ``time_steps`` gives the seconds of forward, backward and update of some steps of this worker.
    It is given a function that returns the mean of a number over all workers, who wait for each
    other in it. Where there are several hosts, ``time_allreduce`` gives the seconds of PyTorch's
    all-reduce of so many fp32 elements, the same on all workers. TransportError for a worker that
    is lost.
    )");
}

}  // namespace gossamer::python
