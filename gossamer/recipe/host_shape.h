#pragma once
/// Hosts and their workers, as command lines and recipes write them.

#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/cluster.h"

namespace gossamer {

/// "4" or "1,2,4" as positive integers; throws std::invalid_argument that names `flag`.
std::vector<int> parse_counts(std::string_view flag, std::string_view text);

/// The hosts that --hosts and --per-host describe: a single number ("2") is the same on `hosts`
/// hosts; a list ("1,2,4") has one number per host and says by itself how many there are. Throws
/// std::invalid_argument, with `place`, for more than kMostWorkers.
HostShape parse_host_shape(int hosts, std::string_view per_host,
                           std::string_view place = "command line");

/// The same from flags that may be missing: `hosts` 0 is `default_hosts`, or as many as --per-host
/// has numbers. Throws std::invalid_argument, which begins with `place`, where they contradict each
/// other or mean more than kMostWorkers.
HostShape host_shape_of(int hosts, int default_hosts, const std::string& per_host,
                        const std::string& place);

/// "4 hosts x 2 workers" or "3 hosts with 1, 2, 4 workers".
std::string describe(const HostShape& shape);

}  // namespace gossamer
