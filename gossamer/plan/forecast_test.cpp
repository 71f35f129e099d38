#include "gossamer/plan/forecast.h"

#include <gtest/gtest.h>

#include <stdexcept>

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
  return forecast(pairs_of_workers(), workload, parse_candidate(method), {.steps = 5}).step_s;
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

}  // namespace
}  // namespace gossamer
