#include "gossamer/base/cluster_file.h"

#include <cmath>
#include <sstream>

#include "gossamer/base/toml.h"
#include "gossamer/base/units.h"

namespace gossamer {
namespace {

constexpr std::string_view kSections[] = {"hosts"};
constexpr std::string_view kKeys[] = {"count",        "workers",        "link_rate",
                                      "link_latency", "inside_rate",    "inside_latency",
                                      "device_rate",  "device_latency", "device_inside_rate",
                                      "host_rate",    "speed"};

struct Host {
  HostSpec spec;
  int count = 1;
  double speed = 1;
};

void read_count(const TomlTable& table, std::string_view key, int& into) {
  if (!table.read(key, into)) return;
  table.check(into >= 1 && into <= kMostWorkers, key, "from 1 to " + std::to_string(kMostWorkers),
              std::to_string(into));
}

void read_rate(const TomlTable& table, std::string_view key, double& into) {
  if (!table.read_rate(key, into)) return;
  table.check(into > 0, key, "positive: nothing reaches a host without a link", "0");
}

void read_latency(const TomlTable& table, std::string_view key, double& into) {
  if (!table.read_duration(key, into)) return;
  table.check(into <= 1e6, key, "at most 1e6 s", std::to_string(into) + " s");
}

Host read_host(const TomlTable& table) {
  table.allow_only(kKeys);
  Host host;
  read_count(table, "count", host.count);
  read_count(table, "workers", host.spec.workers);
  read_rate(table, "link_rate", host.spec.link.rate_bytes_per_s);
  read_rate(table, "inside_rate", host.spec.inside.rate_bytes_per_s);
  read_rate(table, "device_rate", host.spec.device.rate_bytes_per_s);
  read_rate(table, "device_inside_rate", host.spec.device_inside.rate_bytes_per_s);
  read_latency(table, "link_latency", host.spec.link.latency_s);
  read_latency(table, "inside_latency", host.spec.inside.latency_s);
  read_latency(table, "device_latency", host.spec.device.latency_s);
  host.spec.host_rate_bytes_per_s = usual_host_rate(host.spec);
  read_rate(table, "host_rate", host.spec.host_rate_bytes_per_s);
  if (table.read("speed", host.speed)) {
    table.check(host.speed >= 1e-6 && host.speed <= 1e6, "speed", "between 1e-6 and 1e6",
                std::to_string(host.speed));
  }
  return host;
}

ClusterFile read(const TomlTable& table) {
  table.allow_only(kSections);
  table.require("hosts");
  ClusterFile file;
  std::int64_t workers = 0;
  for (const TomlTable& entry : table.tables("hosts")) {
    const Host host = read_host(entry);
    workers += static_cast<std::int64_t>(host.count) * host.spec.workers;
    entry.check(
        workers <= kMostWorkers, "count",
        "so small that all hosts together have up to " + std::to_string(kMostWorkers) + " workers",
        std::to_string(workers));
    file.cluster.hosts.insert(file.cluster.hosts.end(), static_cast<std::size_t>(host.count),
                              host.spec);
    file.speeds.resize(static_cast<std::size_t>(workers), host.speed);
  }
  check_cluster(file.cluster);
  return file;
}

bool are_alike(const LinkSpec& a, const LinkSpec& b) {
  return a.rate_bytes_per_s == b.rate_bytes_per_s && a.latency_s == b.latency_s;
}

void write_rate(std::ostream& out, std::string_view key, double rate) {
  const std::string text = format_rate(rate);
  const bool is_exact = parse_rate(text) == rate;
  out << key << " = \"" << (is_exact ? text : shortest(rate) + " B/s") << "\"\n";
}

void write_link(std::ostream& out, const std::string& name, const LinkSpec& link) {
  const double latency = link.latency_s;
  if (std::isfinite(link.rate_bytes_per_s)) write_rate(out, name + "_rate", link.rate_bytes_per_s);
  if (latency > 0) {
    const std::string text = format_duration(latency);
    const bool is_exact = latency < 60 && parse_duration(text) == latency;
    out << name << "_latency = \"" << (is_exact ? text : shortest(latency) + " s") << "\"\n";
  }
}

}  // namespace

ClusterFile load_cluster(const std::string& path) { return read(load_toml(path)); }

ClusterFile parse_cluster(std::string_view text, std::string_view name) {
  return read(parse_toml(text, name));
}

std::string to_toml(const ClusterFile& file) {
  std::ostringstream out;
  const HostShape shape = file.cluster.shape();
  std::vector<double> speeds;  // by host
  for (std::size_t rank = 0; const int workers : shape.workers_per_host) {
    speeds.push_back(file.speeds.empty() ? 1 : file.speeds[rank]);
    rank += static_cast<std::size_t>(workers);
  }
  const auto speed_of = [&](int host) { return speeds[static_cast<std::size_t>(host)]; };
  for (int h = 0; h < shape.hosts();) {
    const HostSpec& host = file.cluster.hosts[static_cast<std::size_t>(h)];
    int count = 1;
    for (; h + count < shape.hosts(); ++count) {
      const HostSpec& next = file.cluster.hosts[static_cast<std::size_t>(h + count)];
      if (next.workers != host.workers || !are_alike(next.link, host.link) ||
          !are_alike(next.inside, host.inside) || !are_alike(next.device, host.device) ||
          !are_alike(next.device_inside, host.device_inside) ||
          next.host_rate_bytes_per_s != host.host_rate_bytes_per_s ||
          speed_of(h + count) != speed_of(h)) {
        break;
      }
    }
    out << "[[hosts]]\ncount = " << count << "\nworkers = " << host.workers << '\n';
    write_link(out, "link", host.link);
    write_link(out, "inside", host.inside);
    write_link(out, "device", host.device);
    if (std::isfinite(host.device_inside.rate_bytes_per_s)) {
      write_rate(out, "device_inside_rate", host.device_inside.rate_bytes_per_s);
    }
    if (host.host_rate_bytes_per_s != usual_host_rate(host)) {
      write_rate(out, "host_rate", host.host_rate_bytes_per_s);
    }
    if (speed_of(h) != 1) out << "speed = " << shortest(speed_of(h)) << '\n';
    h += count;
  }
  return out.str();
}

}  // namespace gossamer
