#pragma once
/// What several commands read from the command line in the same way.

#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/cluster.h"

namespace gossamer {

/// "4" or "1,2,4" as positive integers; throws std::invalid_argument that names `flag`.
std::vector<int> parse_counts(std::string_view flag, std::string_view text);

/// The hosts that --hosts and --per-host describe: a single number ("2") is the same on `hosts`
/// hosts; a list ("1,2,4") has one number per host and says by itself how many there are.
HostShape parse_host_shape(int hosts, std::string_view per_host);

/// The same where both flags were given: refuses a list whose length is not `hosts`. `place` opens
/// the message.
HostShape agreed_host_shape(std::string_view place, int hosts, std::string_view per_host);

/// "4 hosts x 2 workers" or "3 hosts with 1, 2, 4 workers".
std::string describe(const HostShape& shape);

}  // namespace gossamer
