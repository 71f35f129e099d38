#include "gossamer/cli/plan/scenario_flags.h"

#include <algorithm>
#include <limits>

#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/base/units.h"
#include "gossamer/cli/amount.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/model/even_buckets.h"
#include "gossamer/recipe/host_shape.h"

namespace gossamer {
namespace {

constexpr int kDefaultHosts = 4;
constexpr const char* kInsideRate = "10GB/s";
constexpr const char* kCompute = "250ms";

}  // namespace

void add_scenario_flags(CLI::App& app, ScenarioFlags& f) {
  CLI::Option* cluster = app.add_option(
      "--cluster", f.cluster, "TOML file of hosts, workers and links; left out: the flags below");
  const auto of_cluster = [&](CLI::Option* option) {
    option->excludes(cluster)->group("Cluster, without a file");
    return option;
  };
  of_cluster(app.add_option("--hosts", f.hosts, "number of hosts (default 4)"))->check(kFromOneUp);
  of_cluster(app.add_option("--per-host", f.per_host, "workers per host, or one number per host"))
      ->capture_default_str();
  of_cluster(app.add_option("--link-rate,--link", f.link_rate, "of each host, one direction"))
      ->capture_default_str();
  of_cluster(app.add_option("--link-latency", f.link_latency, "between hosts"))
      ->capture_default_str();
  of_cluster(app.add_option("--inside-rate", f.inside_rate,
                            "between two workers of a host (default 10GB/s; with --gpu an even "
                            "part of 12GB/s of the host's memory)"));
  of_cluster(
      app.add_option("--device-rate", f.device_rate,
                     "between each worker's GPU and the host's memory, as 25GB/s (default the "
                     "GPU's; without --gpu parameters are in the host's memory)"));
  of_cluster(
      app.add_option("--device-inside-rate", f.device_inside_rate,
                     "between two GPUs of a host, for DDP, as 300GB/s (default the GPU's, or "
                     "--inside-rate)"));
  of_cluster(app.add_option("--host-rate", f.host_rate,
                            "of parameters, what a worker's thread of exchanges gets through "
                            "(default 2.4GB/s with GPUs, else unlimited)"));
  CLI::Option* workload =
      app.add_option("--workload", f.workload,
                     "TOML file of parameters and compute time; left out: the flags below");
  const auto of_workload = [&](CLI::Option* option) {
    option->excludes(workload)->group("Workload, without a file");
    return option;
  };
  of_workload(app.add_option("--parameters,--params", f.parameters, "how many: 25M, 7B"))
      ->capture_default_str();
  of_workload(app.add_option("--buckets", f.buckets, "equal pieces that are exchanged"))
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  CLI::Option* compute = of_workload(app.add_option(
      "--compute", f.compute, "of a step, forward and backward (default 250ms, or the GPU's)"));
  of_workload(app.add_option("--deviation", f.deviation, "standard deviation of the compute time"))
      ->capture_default_str();
  of_workload(app.add_option("--update", f.update, "time of the optimizer"))->capture_default_str();
  add_gpu_flags(app, f.gpu, *workload, *compute);
}

ClusterFile cluster_of(const ScenarioFlags& f, const std::string& command) {
  if (!f.cluster.empty()) return load_cluster(f.cluster);
  const HostShape shape = host_shape_of(f.hosts, kDefaultHosts, f.per_host, command);
  ClusterFile file;
  const LinkSpec link{parse_rate(f.link_rate, command + " --link-rate"),
                      parse_duration(f.link_latency, command + " --link-latency")};
  const std::string rate = f.inside_rate.empty() ? kInsideRate : f.inside_rate;
  const double given = parse_rate(rate, command + " --inside-rate");
  LinkSpec device;
  if (!f.gpu.name.empty()) device = device_link(find_gpu(f.gpu.name));
  if (!f.device_rate.empty()) {
    device.rate_bytes_per_s = parse_rate(f.device_rate, command + " --device-rate");
  }
  LinkSpec between_devices;
  if (!f.gpu.name.empty()) between_devices.rate_bytes_per_s = find_gpu(f.gpu.name).port_bytes_per_s;
  if (!f.device_inside_rate.empty()) {
    between_devices.rate_bytes_per_s =
        parse_rate(f.device_inside_rate, command + " --device-inside-rate");
  }
  for (int workers : shape.workers_per_host) {
    const bool is_usual = f.inside_rate.empty() && !f.gpu.name.empty();
    const double inside = is_usual ? memory_rate(workers) : given;
    HostSpec host{workers, link, {inside, 0}, device, between_devices};
    host.host_rate_bytes_per_s = f.host_rate.empty()
                                     ? usual_host_rate(host)
                                     : parse_rate(f.host_rate, command + " --host-rate");
    file.cluster.hosts.push_back(host);
  }
  file.speeds.assign(at(shape.workers()), 1);
  check_cluster(file.cluster);
  return file;
}

WorkloadFile workload_of(const ScenarioFlags& f, const ClusterFile& cluster,
                         const std::string& command) {
  if (!f.workload.empty()) return load_workload(f.workload);
  if (!f.gpu.name.empty() && !computes_samples(f.gpu) && f.gpu.flop_per_sample.empty() &&
      f.compute.empty()) {
    fail_argument({.place = command,
                   .what = "--gpu computes tokens or samples",
                   .got = "'" + f.gpu.name + "' and no number of them",
                   .remedy = "give --tokens-per-step or --tokens-per-worker (transformers), "
                             "--flop-per-sample with --samples-per-worker, or --compute"});
  }
  WorkloadFile file;
  Workload& workload = file.workload;
  const std::int64_t parameters = parse_amount("--parameters", f.parameters, command);
  workload.buckets = even_buckets(parameters, f.buckets);
  const int workers = cluster.cluster.shape().workers();
  workload.compute.mean_s =
      computes_samples(f.gpu) || !f.gpu.flop_per_sample.empty()
          ? gpu_compute_s(f.gpu, static_cast<double>(parameters), workers, command)
          : parse_duration(f.compute.empty() ? kCompute : f.compute, command + " --compute");
  workload.compute.deviation_s = parse_duration(f.deviation, command + " --deviation");
  if (workload.compute.deviation_s > 0) workload.compute.jitter = Jitter::normal;
  workload.update_s = parse_duration(f.update, command + " --update");
  return file;
}

std::vector<std::string> assumptions(const CLI::App& app, const ScenarioFlags& f,
                                     const ClusterFile& cluster,
                                     const std::vector<FlagValue>& of_target) {
  const bool has_gpu = !f.gpu.name.empty();
  const auto is_told = [&](const std::string& flag) {
    if (app.get_option(flag)->count() > 0) return true;
    if (flag == "--inside-rate") {
      const auto is_alone = [](const HostSpec& host) { return host.workers == 1; };
      return has_gpu || std::ranges::all_of(cluster.cluster.hosts, is_alone);
    }
    return flag == "--compute" && computes_samples(f.gpu);
  };
  const FlagValue of_cluster[] = {
      {"--hosts", std::to_string(kDefaultHosts)},
      {"--per-host", f.per_host},
      {"--link-rate", f.link_rate},
      {"--link-latency", f.link_latency},
      {"--inside-rate", kInsideRate},
  };
  const FlagValue of_workload[] = {
      {"--parameters", f.parameters}, {"--buckets", std::to_string(f.buckets)},
      {"--compute", kCompute},        {"--deviation", f.deviation},
      {"--update", f.update},
  };
  std::string examples;
  const auto add = [&](const auto& defaults) {
    for (const auto& [flag, value] : defaults) {
      if (!is_told(flag)) examples += " " + flag + " " + value;
    }
  };
  if (f.cluster.empty()) add(of_cluster);
  if (f.workload.empty()) add(of_workload);
  if (f.workload.empty()) add(of_target);
  std::vector<std::string> lines;
  if (has_gpu) {
    const auto parameters =
        static_cast<double>(parse_amount("--parameters", f.parameters, app.get_name()));
    lines =
        gpu_assumptions(f.gpu, cluster, parameters,
                        {.inside_rate = f.cluster.empty() && f.inside_rate.empty(),
                         .device_inside_rate = f.cluster.empty() && f.device_inside_rate.empty(),
                         .device_rate = f.cluster.empty() && f.device_rate.empty()});
  }
  const bool has_devices =
      std::ranges::any_of(cluster.cluster.hosts, is_limited, &HostSpec::device);
  if (f.cluster.empty() && f.host_rate.empty() && has_devices) {
    lines.push_back(
        "2.4 GB/s of parameters are copied, coded and added by the thread of a worker's exchanges, "
        "as on the host of an H200; --host-rate");
  }
  if (!examples.empty()) lines.push_back("examples, where you gave nothing:" + examples);
  return lines;
}

std::string describe(const ClusterFile& file) {
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const HostSpec& host : file.cluster.hosts) {
    least = std::min(least, host.link.rate_bytes_per_s);
    most = std::max(most, host.link.rate_bytes_per_s);
  }
  std::string text = describe(file.cluster.shape()) + ", links of " + format_rate(least);
  if (least != most) text += " to " + format_rate(most);
  return text;
}

std::string describe(const Workload& workload) {
  const double bytes =
      static_cast<double>(elements_of(workload)) * static_cast<double>(size_of(workload.dtype));
  std::string text = format_bytes(bytes) + " of parameters in " +
                     std::to_string(workload.buckets.size()) + " buckets, " +
                     format_duration(workload.compute.mean_s) + " of compute";
  if (workload.compute.deviation_s > 0) {
    text += " (deviation " + format_duration(workload.compute.deviation_s) + ")";
  }
  return text;
}

}  // namespace gossamer
