#include "gossamer/transport/conformance.h"

#include "gossamer/transport/net/net_team.h"
#include "gossamer/transport/threads.h"

namespace gossamer::conformance {
namespace {

std::vector<std::unique_ptr<Transport>> make_free(int workers) {
  ClusterSpec cluster;
  cluster.hosts.push_back({.workers = workers, .link = {}, .inside = {}});
  return make_threads_transports(cluster);
}

// Pairs of workers on hosts whose links are fast, but slow enough to be felt.
std::vector<std::unique_ptr<Transport>> make_with_links(int workers) {
  ClusterSpec cluster;
  for (int left = workers; left > 0; left -= 2) {
    cluster.hosts.push_back({.workers = std::min(left, 2),
                             .link = {.rate_bytes_per_s = 300e6, .latency_s = 100e-6},
                             .inside = {.rate_bytes_per_s = 1e9, .latency_s = 0}});
  }
  return make_threads_transports(cluster, {.emulate_links = true});
}

// As between hosts.
std::vector<std::unique_ptr<Transport>> make_with_streams(int workers) {
  return make_net_team(workers, {.address = "127.0.0.1", .share_memory = false});
}

std::vector<std::unique_ptr<Transport>> make_authenticated(int workers) {
  return make_net_team(workers,
                       {.address = "127.0.0.1", .share_memory = false, .authenticates = true});
}

std::vector<std::unique_ptr<Transport>> make_with_tls(int workers) {
  return make_net_team(workers, {.address = "127.0.0.1", .share_memory = false, .tls = true});
}

INSTANTIATE_TEST_SUITE_P(Transports, TransportConformance,
                         ::testing::Values(Case{"threads", make_free},
                                           Case{"threads_with_links", make_with_links},
                                           Case{"net", [](int n) { return make_net_team(n); }},
                                           Case{"net_streams", make_with_streams},
                                           Case{"net_authenticated", make_authenticated},
                                           Case{"net_tls", make_with_tls}),
                         name_of);

}  // namespace
}  // namespace gossamer::conformance
