#include "gossamer/plan/forecast.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string_view>

#include "gossamer/model/even_buckets.h"

namespace gossamer {
namespace {

ClusterSpec pairs_of_workers() {
  ClusterSpec cluster;
  for (int h = 0; h < 3; ++h) {
    cluster.hosts.push_back({.workers = 2, .link = {.rate_bytes_per_s = 1e6}, .inside = {}});
  }
  return cluster;
}

double step_s(std::string_view method, const Workload& workload) {
  return forecast(pairs_of_workers(), workload, parse_method(method), {.steps = 5}).step_s;
}

TEST(Forecast, OnlyDdpHasToMakeDoWithAShareOfTheLinks) {
  const Workload whole{.buckets = {100'000, 100'000}, .compute = {.mean_s = 1e-3}};
  Workload half = whole;
  half.ddp_link_share = 0.5;
  const double compute = whole.compute.mean_s;
  EXPECT_NEAR(step_s("ddp", half), 2 * step_s("ddp", whole), 2 * compute);
  for (const char* method : {"allreduce", "aer", "ring"}) {
    EXPECT_EQ(step_s(method, half), step_s(method, whole)) << method;
  }
}

TEST(Forecast, TheShareIsFoundInWhatAnAllReduceTakes) {
  for (const double share : {0.3, 0.85, 1.0}) {
    const Workload workload{
        .buckets = {300'000}, .compute = {.mean_s = 0}, .ddp_link_share = share};
    const double seconds = step_s("ddp", workload);
    EXPECT_NEAR(ddp_link_share(pairs_of_workers(), 300'000, seconds), share, 1e-3);
  }
  EXPECT_EQ(ddp_link_share(pairs_of_workers(), 300'000, 1e-6), 1);
}

TEST(Forecast, AShareIsMoreThanNothingAndAtMostAll) {
  for (const double share : {0.0, -0.5, 1.5, 1e-9}) {
    EXPECT_THROW(step_s("ddp", {.buckets = {10}, .ddp_link_share = share}), std::invalid_argument);
  }
}

/// Neither leaves out what the other charges: inside the hosts, between them, or neither is tight.
TEST(Forecast, TheModelAgreesWithTheSimulationWhateverIsTight) {
  for (const int per_host : {1, 2, 8}) {
    for (const double inside : {1e9, 300e9}) {
      for (const double link : {1e9 / 8, 10e9 / 8, 100e9 / 8}) {
        ClusterSpec cluster;
        for (int h = 0; h < 4; ++h) {
          cluster.hosts.push_back(
              {.workers = per_host, .link = {link, 50e-6}, .inside = {inside, 0}});
        }
        const Workload workload{.buckets = even_buckets(65'000'000, 8), .compute = {.mean_s = .07}};
        for (const char* method : {"ddp", "allreduce", "allreduce:int8", "aer", "aer:bf16",
                                   "base_k", "complete:int8", "ring", "one_peer_exponential"}) {
          const Forecast found = forecast(cluster, workload, parse_method(method), {.steps = 12});
          EXPECT_NEAR(found.model_s, found.step_s, 0.1 * found.step_s)
              << method << ", " << per_host << " per host, inside " << inside << ", link " << link;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gossamer
