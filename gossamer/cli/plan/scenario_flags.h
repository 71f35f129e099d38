#pragma once
/// The cluster and the workload that `simulate` and `plan` are asked about: from TOML files, or
/// from flags for the simple cases.

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/cluster_file.h"
#include "gossamer/cli/plan/gpu_flags.h"
#include "gossamer/plan/workload_file.h"

namespace gossamer {

struct ScenarioFlags {
  std::string cluster;  ///< a file; else the flags up to `host_rate`
  int hosts = 0;        ///< 0: 4, or as many as per_host has numbers
  std::string per_host = "1";
  std::string link_rate = "1Gbit/s";
  std::string link_latency = "50us";
  std::string inside_rate;         ///< empty: that of the GPU, or 10GB/s
  std::string device_rate;         ///< empty: that of the GPU, or parameters in the host's memory
  std::string device_inside_rate;  ///< empty: that of the GPU, or inside_rate
  std::string host_rate;           ///< empty: kUsualHostRate where there are devices
  std::string workload;            ///< a file; else the flags from here on
  std::string parameters = "25M";
  int buckets = 8;
  std::string compute;  ///< empty: what the GPU needs for the tokens, or 250ms
  std::string deviation = "0s";
  std::string update = "0s";
  GpuFlags gpu;
};

/// Adds the flags; those of what a file describes exclude the file.
void add_scenario_flags(CLI::App& app, ScenarioFlags& flags);

/// Throw std::invalid_argument for what the flags or the file cannot mean.
ClusterFile cluster_of(const ScenarioFlags& flags, const std::string& command);
WorkloadFile workload_of(const ScenarioFlags& flags, const ClusterFile& cluster,
                         const std::string& command);

/// A flag, and the value that it has where it is not given.
using FlagValue = std::pair<std::string, std::string>;

/// What the answer rests on that nobody has given or measured, a line each: what a GPU is taken to
/// do, and the values of flags that `app` was not given; `of_target` are those of its own that a
/// workload's file may have, too.
std::vector<std::string> assumptions(const CLI::App& app, const ScenarioFlags& flags,
                                     const ClusterFile& cluster,
                                     const std::vector<FlagValue>& of_target = {});

/// "4 hosts x 2 workers, links of 1 Gbit/s" and the like.
std::string describe(const ClusterFile& cluster);
std::string describe(const Workload& workload);

}  // namespace gossamer
