#include "gossamer/base/cluster.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>

#include "gossamer/base/errors.h"

namespace gossamer {
namespace {

void check_workers(std::int64_t workers, std::string_view place) {
  if (workers <= kMostWorkers) return;
  fail_argument({.place = place,
                 .what = "there may be up to " + std::to_string(kMostWorkers) + " workers",
                 .got = std::to_string(workers),
                 .remedy = "give fewer hosts or workers"});
}

}  // namespace

int HostShape::workers() const {
  return std::accumulate(workers_per_host.begin(), workers_per_host.end(), 0);
}

int HostShape::first_rank(int host) const {
  GOSSAMER_ASSERT(host >= 0 && host < hosts());
  return std::accumulate(workers_per_host.begin(), workers_per_host.begin() + host, 0);
}

int HostShape::local_rank_of(int rank) const { return rank - first_rank(host_of(rank)); }

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

void check_host_shape(const HostShape& shape, std::string_view place) {
  check_argument(place, !shape.workers_per_host.empty(), "a cluster needs at least one host",
                 "none");
  std::int64_t workers = 0;
  for (const int of_host : shape.workers_per_host) {
    check_argument(place, of_host >= 1, "a host needs at least one worker",
                   std::to_string(of_host));
    workers += of_host;
  }
  check_workers(workers, place);
}

HostShape even_hosts(int hosts, int per_host, std::string_view place) {
  check_argument(place, hosts >= 1 && per_host >= 1,
                 "hosts and workers per host must be at least 1",
                 std::to_string(hosts) + " x " + std::to_string(per_host));
  check_workers(std::int64_t{hosts} * per_host, place);  // before memory is asked for
  return {std::vector<int>(static_cast<std::size_t>(hosts), per_host)};
}

HostShape ClusterSpec::shape() const {
  HostShape shape;
  for (const HostSpec& host : hosts) shape.workers_per_host.push_back(host.workers);
  return shape;
}

bool is_limited(const LinkSpec& link) {
  return !std::isinf(link.rate_bytes_per_s) || link.latency_s > 0;
}

double usual_host_rate(const HostSpec& host) {
  return is_limited(host.device) ? kUsualHostRate : std::numeric_limits<double>::infinity();
}

double transfer_s(const LinkSpec& link, double bytes) {
  return link.latency_s + bytes / link.rate_bytes_per_s;
}

void check_cluster(const ClusterSpec& cluster) {
  check_host_shape(cluster.shape());
  for (const HostSpec& host : cluster.hosts) {
    for (const LinkSpec& link : {host.link, host.inside, host.device, host.device_inside}) {
      check_argument("cluster", link.rate_bytes_per_s > 0, "the rate of a link must be positive",
                     std::to_string(link.rate_bytes_per_s) + " bytes/s");
      check_argument("cluster", link.latency_s >= 0 && link.latency_s <= 1e6,
                     "a latency must be in [0, 1e6] s", std::to_string(link.latency_s));
    }
    check_argument("cluster", host.host_rate_bytes_per_s > 0, "a host_rate must be positive",
                   std::to_string(host.host_rate_bytes_per_s) + " bytes/s");
  }
}

}  // namespace gossamer
