#pragma once
/// Where the workers are: hosts, workers on each, and the links of both kinds.

#include <limits>
#include <string_view>
#include <vector>

namespace gossamer {

/// How many workers each host has. Ranks are dealt host by host: host 0 has ranks 0, 1, …
struct HostShape {
  std::vector<int> workers_per_host;

  int hosts() const { return static_cast<int>(workers_per_host.size()); }
  int workers() const;
  int first_rank(int host) const;
  int host_of(int rank) const;
  int local_rank_of(int rank) const;       ///< its place among those of its host
  std::vector<int> hosts_by_rank() const;  ///< host_of() of all
};

/// Most workers of a cluster, and of one host.
inline constexpr int kMostWorkers = 65536;

/// Throws std::invalid_argument, with `place`, unless there are hosts, each with workers, and up to
/// kMostWorkers in all.
void check_host_shape(const HostShape& shape, std::string_view place = "cluster");

/// `hosts` hosts with `per_host` workers each, of which the same holds.
HostShape even_hosts(int hosts, int per_host, std::string_view place = "cluster");

/// A full-duplex link: what one direction carries, and how long a byte is under way.
struct LinkSpec {
  double rate_bytes_per_s = std::numeric_limits<double>::infinity();
  double latency_s = 0;
};

/// One host: its workers share `link` to the other hosts and talk to each other over `inside`.
struct HostSpec {
  int workers = 1;
  LinkSpec link;
  LinkSpec inside;
  /// Between the host's memory and the device that holds a worker's parameters, for each worker.
  /// Without limits: they are in the host's memory.
  LinkSpec device = {};
  /// Between two devices of the host, for what leaves their memory by itself. Without limits: as
  /// `inside`.
  LinkSpec device_inside = {};
  /// What the thread of a worker's exchanges gets through (model/host_work.h), for each worker;
  /// infinite: it takes no time of its own.
  double host_rate_bytes_per_s = std::numeric_limits<double>::infinity();
};

/// The host_rate of a host whose workers are on devices, where nobody has measured it: what the
/// all-reduce of 67 million parameters on an H200 left (docs/results/devices.md).
inline constexpr double kUsualHostRate = 2.4e9;

/// Whether a copy over the link takes any time.
bool is_limited(const LinkSpec& link);
/// kUsualHostRate where the host's workers are on devices; infinite elsewhere.
double usual_host_rate(const HostSpec& host);
/// Seconds that the bytes take; 0 where the link has no limits.
double transfer_s(const LinkSpec& link, double bytes);

/// The whole cluster: hosts around one switch that is never the bottleneck.
struct ClusterSpec {
  std::vector<HostSpec> hosts;

  HostShape shape() const;
};

/// Throws std::invalid_argument unless there are hosts, each with workers, the rates of all links
/// are positive, and their latencies between 0 and 1e6 s.
void check_cluster(const ClusterSpec& cluster);

}  // namespace gossamer
