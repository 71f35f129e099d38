#pragma once
/// Which workers are on one host: from what is true of their machines, then from what a launcher
/// says.

#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/cluster.h"

namespace gossamer {

/// Where a worker is, as it tells the others.
struct Place {
  std::string machine;    ///< see machine_of_this_process(); empty: the system does not say
  std::string name;       ///< of the machine
  std::string node;       ///< the launcher's number of the host; empty: not told
  int local_rank = -1;    ///< the launcher's number of the worker on its host; −1: not told
  int local_workers = 0;  ///< how many the launcher says are on the host; 0: not told
};

struct FoundHosts {
  HostShape shape;
  std::vector<std::string> names;  ///< of the hosts, each another one
  std::string warning;             ///< where the launcher's words are not true; empty: they are
};

/// The same for all processes of one start of one machine in one network namespace, and for no
/// others. Empty where the system does not say.
std::string machine_of_this_process();

/// The hosts of the workers, whose places are by rank. See Note [Hosts follow from what is true].
/// Throws std::invalid_argument, with `who` as its place, where a host's ranks do not follow each
/// other, and where the launcher's words contradict each other and no machine says what is true.
FoundHosts find_hosts(const std::vector<Place>& places, std::string_view who);

}  // namespace gossamer
