#include "gossamer/cli/scenario_flags.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gossamer/base/errors.h"
#include "gossamer/base/units.h"
#include "gossamer/cli/command_line.h"
#include "gossamer/cli/options.h"
#include "gossamer/model/even_buckets.h"

namespace gossamer {
namespace {

constexpr int kDefaultHosts = 4;
constexpr double kMostParameters = 1e13;

/// "25M", "7.5B" or "1000000".
std::int64_t parse_count(const std::string& text, const std::string& command) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"G", 1e9}};
  double factor = 1;
  std::string digits = text;
  for (const auto& [unit, size] : kUnits) {
    if (!digits.ends_with(unit)) continue;
    factor = size;
    digits.resize(digits.size() - unit.size());
    break;
  }
  const bool is_number = !digits.empty() && digits.size() <= 20 &&
                         digits.find_first_not_of("0123456789.") == std::string::npos &&
                         std::ranges::count(digits, '.') <= 1 && digits != ".";
  const double value = is_number ? std::round(std::stod(digits) * factor) : 0;
  if (value >= 1 && value <= kMostParameters) return static_cast<std::int64_t>(value);
  fail_argument({.place = command,
                 .what = "--parameters takes a number from 1 to 1e13",
                 .got = "'" + text + "'",
                 .remedy = text.ends_with("MB") || text.ends_with("GB")
                               ? "it counts parameters, not bytes: did you mean '" +
                                     text.substr(0, text.size() - 1) + "'?"
                               : "for example 25M, 7B or 1000000"});
}

}  // namespace

void add_scenario_flags(CLI::App& app, ScenarioFlags& f) {
  CLI::Option* cluster =
      app.add_option("--cluster", f.cluster, "TOML file of hosts, workers and links");
  const auto of_cluster = [&](CLI::Option* option) {
    option->excludes(cluster)->group("Cluster, without a file");
    return option;
  };
  of_cluster(app.add_option("--hosts", f.hosts, "number of hosts (default 4)"))->check(kFromOneUp);
  of_cluster(app.add_option("--per-host", f.per_host, "workers per host, or one number per host"))
      ->capture_default_str();
  of_cluster(app.add_option("--link-rate", f.link_rate, "of each host, one direction"))
      ->capture_default_str();
  of_cluster(app.add_option("--link-latency", f.link_latency, "between hosts"))
      ->capture_default_str();
  of_cluster(app.add_option("--inside-rate", f.inside_rate, "between two workers of a host"))
      ->capture_default_str();
  CLI::Option* workload =
      app.add_option("--workload", f.workload, "TOML file of parameters and compute time");
  const auto of_workload = [&](CLI::Option* option) {
    option->excludes(workload)->group("Workload, without a file");
    return option;
  };
  of_workload(app.add_option("--parameters", f.parameters, "how many: 25M, 7B"))
      ->capture_default_str();
  of_workload(app.add_option("--buckets", f.buckets, "equal pieces that are exchanged"))
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  of_workload(app.add_option("--compute", f.compute, "of a step, forward and backward"))
      ->capture_default_str();
  of_workload(app.add_option("--deviation", f.deviation, "standard deviation of the compute time"))
      ->capture_default_str();
  of_workload(app.add_option("--update", f.update, "time of the optimizer"))->capture_default_str();
}

ClusterFile cluster_of(const ScenarioFlags& f, const std::string& command) {
  if (!f.cluster.empty()) return load_cluster(f.cluster);
  const HostShape shape = f.hosts == 0 ? parse_host_shape(kDefaultHosts, f.per_host)
                                       : agreed_host_shape(command, f.hosts, f.per_host);
  if (shape.workers() > kMostWorkers) {
    fail_argument({.place = command,
                   .what = "there may be up to " + std::to_string(kMostWorkers) + " workers",
                   .got = std::to_string(shape.workers())});
  }
  ClusterFile file;
  const LinkSpec link{parse_rate(f.link_rate, command + " --link-rate"),
                      parse_duration(f.link_latency, command + " --link-latency")};
  const LinkSpec inside{parse_rate(f.inside_rate, command + " --inside-rate"), 0};
  for (int workers : shape.workers_per_host) file.cluster.hosts.push_back({workers, link, inside});
  file.speeds.assign(static_cast<std::size_t>(shape.workers()), 1);
  check_cluster(file.cluster);
  return file;
}

WorkloadFile workload_of(const ScenarioFlags& f, const std::string& command) {
  if (!f.workload.empty()) return load_workload(f.workload);
  WorkloadFile file;
  Workload& workload = file.workload;
  workload.buckets = even_buckets(parse_count(f.parameters, command), f.buckets);
  workload.compute.mean_s = parse_duration(f.compute, command + " --compute");
  workload.compute.deviation_s = parse_duration(f.deviation, command + " --deviation");
  if (workload.compute.deviation_s > 0) workload.compute.jitter = Jitter::normal;
  workload.update_s = parse_duration(f.update, command + " --update");
  return file;
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
