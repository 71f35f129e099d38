#pragma once
/// cluster.toml: hosts, their workers and links.

#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/cluster.h"

namespace gossamer {

/// What is left out of a host is as in HostSpec: one worker, links without limits or latency.
///
///     [[hosts]]
///     count = 4                # so many hosts that are alike, one after the other
///     workers = 2
///     link_rate = "1Gbit/s"    # of one direction, to and from all other hosts
///     link_latency = "50us"
///     inside_rate = "10GB/s"   # between two workers of the host
///     inside_latency = "2us"
///     device_rate = "24GB/s"   # between a worker's GPU and the host's memory, each direction
///     device_latency = "10us"  # without either, parameters are in the host's memory
///     device_inside_rate = "300GB/s"  # between two GPUs of the host, for DDP; else inside_rate
///     host_rate = "2.4GB/s"    # of parameters, what a worker's thread of exchanges gets through
///     speed = 1.0              # of its workers; they compute for 1/speed times as long
struct ClusterFile {
  ClusterSpec cluster;
  std::vector<double> speeds;  ///< by worker
};

/// Reads the file. Throws IoError where it cannot be read, and std::invalid_argument that names
/// line and column for what it cannot mean: an unknown key or unit, a rate of 0 (a host that is cut
/// off), no hosts, more than kMostWorkers workers.
ClusterFile load_cluster(const std::string& path);
/// The same of a text; `name` stands for the file in messages.
ClusterFile parse_cluster(std::string_view text, std::string_view name);

/// As text that parse_cluster() takes; hosts in a row that are alike are one entry.
std::string to_toml(const ClusterFile& file);

}  // namespace gossamer
