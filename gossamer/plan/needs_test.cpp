#include "gossamer/plan/needs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "gossamer/model/even_buckets.h"

namespace gossamer {
namespace {

constexpr double kCompute_s = 0.1;
constexpr double kParameters = 2'000'000;
constexpr int kBuckets = 8;
constexpr double kFrames = 1514.0 / 1448.0;  // bytes on the wire per byte of payload

/// Links of bytes per second, without latency; inside hosts nothing takes time.
ClusterSpec links_of(const HostShape& shape, double rate) {
  ClusterSpec cluster;
  for (int workers : shape.workers_per_host) cluster.hosts.push_back({workers, {rate, 0}, {}});
  return cluster;
}

Workload work_of(double seconds) {
  return {.buckets = even_buckets(static_cast<std::int64_t>(kParameters), kBuckets),
          .compute = {.mean_s = seconds}};
}

std::map<std::string, Need> needs_by_name(const ClusterSpec& cluster, const Workload& workload) {
  std::map<std::string, Need> needs;
  for (const Need& need : needs_of(cluster, workload)) needs[name_of(need.candidate)] = need;
  return needs;
}

/// Payloads of 4 bytes per parameter that a host sends per step: an all-reduce among H hosts
/// 2(H − 1)/H, AER half, and the average over all in every fourth step a quarter of an all-reduce.
TEST(Needs, BytesAndTimesAreThoseOfTheClosedForms) {
  const double rate = 1e8;
  for (const HostShape& shape : {even_hosts(4, 1), even_hosts(4, 2), even_hosts(8, 4)}) {
    const double hosts = shape.hosts();
    const double payload = 4 * kParameters;
    const auto needs = needs_by_name(links_of(shape, rate), work_of(kCompute_s));
    ASSERT_EQ(needs.size(), 9U);
    const std::map<std::string, double> sent = {
        {"allreduce", 2 * (hosts - 1) / hosts * payload},
        {"aer", payload / 2},
        {"complete:local=4", 2 * (hosts - 1) / hosts * payload / 4}};
    for (const auto& [name, bytes] : sent) {
      const Need& need = needs.at(name);
      EXPECT_NEAR(need.sent_bytes / bytes, 1, 1e-3) << name;
      EXPECT_NEAR(need.over_compute, bytes * kFrames / rate / kCompute_s, 1e-3) << name;
      const Need& half = needs.at(name.substr(0, name.find(':')) + ":bf16" +
                                  (name.find(':') < name.size() ? ":local=4" : ""));
      EXPECT_NEAR(half.sent_bytes / bytes, 0.5, 1e-3) << name;
    }
  }
}

/// T_AR = max(1 + γ/B, φ + (1 − φ)/B + γ) and T_D = max(1, ωγ) in units of the compute time, solved
/// for 1.05.
TEST(Needs, EnoughIsWhereTheClosedFormsAreFivePercentAboveTheComputeTime) {
  const double first = 1.0 / 3 + 2.0 / 3 / kBuckets;
  const double gamma = std::min(0.05 * kBuckets, 1.05 - first);
  for (const double rate : {1e6, 1e8, 1e11}) {
    const auto needs = needs_by_name(links_of(even_hosts(4, 1), rate), work_of(kCompute_s));
    const auto at_one = [&](const char* name) {  // rate at which the bytes take the compute time
      return needs.at(name).sent_bytes * kFrames / kCompute_s;
    };
    EXPECT_NEAR(needs.at("allreduce").enough_bytes_per_s, at_one("allreduce") / gamma,
                0.01 * at_one("allreduce") / gamma);
    for (const char* name : {"aer", "aer:int8", "complete:bf16:local=4"}) {
      EXPECT_NEAR(needs.at(name).enough_bytes_per_s, at_one(name) / 1.05, 0.02 * at_one(name))
          << name << " " << rate;
    }
  }
}

TEST(Needs, HiddenExchangesExposeNothing) {
  const auto slow = needs_by_name(links_of(even_hosts(4, 2), 1e6), work_of(kCompute_s));
  EXPECT_GT(slow.at("aer").exposed_s, 0.9 * slow.at("aer").step_s);
  const auto fast = needs_by_name(links_of(even_hosts(4, 2), 1e10), work_of(kCompute_s));
  EXPECT_NEAR(fast.at("aer").step_s, kCompute_s, 1e-9);
  EXPECT_NEAR(fast.at("aer").exposed_s, 0, 1e-9);
}

TEST(Needs, GammaDoesNotHangOnTheParametersWhereComputingGrowsWithThem) {
  const ClusterSpec cluster = links_of(even_hosts(4, 2), 1e8);
  const auto one = needs_by_name(cluster, work_of(kCompute_s));
  Workload three = work_of(3 * kCompute_s);
  three.buckets = even_buckets(3 * static_cast<std::int64_t>(kParameters), kBuckets);
  const auto more = needs_by_name(cluster, three);
  for (const auto& [name, need] : one) {
    EXPECT_NEAR(more.at(name).over_compute / need.over_compute, 1, 1e-3) << name;
    EXPECT_NEAR(more.at(name).enough_bytes_per_s / need.enough_bytes_per_s, 1, 0.01) << name;
  }
}

TEST(Needs, ThereAreNoneWithoutLinksThatLimit) {
  EXPECT_TRUE(needs_of(links_of(even_hosts(1, 8), 1e8), work_of(kCompute_s)).empty());
  EXPECT_TRUE(needs_of(links_of(even_hosts(4, 1), LinkSpec{}.rate_bytes_per_s), work_of(kCompute_s))
                  .empty());
}

}  // namespace
}  // namespace gossamer
