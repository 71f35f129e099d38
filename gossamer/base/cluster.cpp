#include "gossamer/base/cluster.h"

#include <numeric>
#include <string>
#include <string_view>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {}  // namespace

int HostShape::workers() const {
  return std::accumulate(workers_per_host.begin(), workers_per_host.end(), 0);
}

int HostShape::first_rank(int host) const {
  GOSSAMER_ASSERT(host >= 0 && host < hosts());
  return std::accumulate(workers_per_host.begin(), workers_per_host.begin() + host, 0);
}

int HostShape::host_of(int rank) const {
  int host = 0;
  for (int past = 0; host < hosts(); ++host) {
    past += workers_per_host[static_cast<std::size_t>(host)];
    if (rank < past) break;
  }
  GOSSAMER_ASSERT(rank >= 0 && host < hosts());
  return host;
}

std::vector<int> HostShape::hosts_by_rank() const {
  std::vector<int> all;
  for (int host = 0; host < hosts(); ++host) {
    all.insert(all.end(),
               static_cast<std::size_t>(workers_per_host[static_cast<std::size_t>(host)]), host);
  }
  return all;
}

HostShape even_hosts(int hosts, int per_host) {
  check_argument("cluster", hosts >= 1 && per_host >= 1,
                 "hosts and workers per host must be at least 1",
                 std::to_string(hosts) + " x " + std::to_string(per_host));
  return {std::vector<int>(static_cast<std::size_t>(hosts), per_host)};
}

HostShape ClusterSpec::shape() const {
  HostShape shape;
  for (const HostSpec& host : hosts) shape.workers_per_host.push_back(host.workers);
  return shape;
}

void check_cluster(const ClusterSpec& cluster) {
  check_argument("cluster", !cluster.hosts.empty(), "a cluster needs at least one host", "none");
  for (const HostSpec& host : cluster.hosts) {
    check_argument("cluster", host.workers >= 1, "a host needs at least one worker",
                   std::to_string(host.workers));
    for (const LinkSpec& link : {host.link, host.inside}) {
      check_argument("cluster", link.rate_bytes_per_s > 0, "the rate of a link must be positive",
                     std::to_string(link.rate_bytes_per_s) + " bytes/s");
      check_argument("cluster", link.latency_s >= 0 && link.latency_s <= 1e6,
                     "a latency must be in [0, 1e6] s", std::to_string(link.latency_s));
    }
  }
}

}  // namespace gossamer
