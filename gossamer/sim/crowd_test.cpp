// Crowds against the single messages that they stand for.

#include "gossamer/sim/crowd.h"

#include <gtest/gtest.h>

#include "gossamer/exchange/group_legs.h"
#include "gossamer/sim/sim_case.h"

namespace gossamer {
namespace {

using namespace sim_case;

constexpr int kFollowAll = 1 << 20;
constexpr int kFollowNone = 1;

struct Case {
  std::vector<int> workers;
  double inside_rate = 0;
};

ClusterSpec cluster_of(const Case& shape, double latency_s) {
  ClusterSpec cluster;
  for (const int workers : shape.workers) {
    cluster.hosts.push_back(
        {.workers = workers,
         .link = {.rate_bytes_per_s = 1e9, .latency_s = latency_s},
         .inside = {.rate_bytes_per_s = shape.inside_rate, .latency_s = latency_s / 10}});
  }
  return cluster;
}

SimMethod over_all(std::string_view pattern, const ClusterSpec& cluster,
                   Codec codec = Codec::fp32) {
  SimMethod method = of_pattern(pattern, cwa("complete", cluster));
  method.codec = codec;
  return method;
}

const Case kCases[] = {
    {std::vector<int>(8, 1), 1e12},
    {std::vector<int>(24, 1), 1e12},
    {std::vector<int>(4, 4), 5e9},
    {std::vector<int>(6, 8), 2e10},
    {{1, 2, 4}, 1e10},
};

SimResult run(const ClusterSpec& cluster, const Workload& work, const SimMethod& method,
              int largest_group) {
  return simulate(cluster, work, method, {.steps = 24, .largest_group = largest_group});
}

Workload work_of(double compute_s, double jitter) {
  Workload work{.buckets = {2'000'000, 2'000'000, 1'000'000}, .compute = {.mean_s = compute_s}};
  if (jitter == 0) return work;
  work.compute.jitter = Jitter::normal;
  work.compute.deviation_s = jitter * compute_s;
  return work;
}

/// By mean step, without the first four.
double ratio_of(const ClusterSpec& cluster, const Workload& work, const SimMethod& method) {
  return mean_step_s(run(cluster, work, method, kFollowNone), 4) /
         mean_step_s(run(cluster, work, method, kFollowAll), 4);
}

TEST(Crowds, TakeAsLongAsTheirMessages) {
  for (const Case& shape : kCases) {
    const ClusterSpec cluster = cluster_of(shape, 20e-6);
    for (const double compute_s : {0.001, 0.05}) {
      for (const char* pattern : {"allreduce", "ddp", "cwa"}) {
        const SimMethod method = over_all(pattern, cluster);
        EXPECT_NEAR(ratio_of(cluster, work_of(compute_s, 0), method), 1, 0.003)
            << shape.workers.size() << " hosts, " << pattern << ", " << compute_s;
        // A ring's early members are some chunks ahead when the last one comes.
        EXPECT_NEAR(ratio_of(cluster, work_of(compute_s, 0.2), method), 1,
                    pattern == std::string("ddp") ? 0.04 : 0.008)
            << shape.workers.size() << " hosts, " << pattern << ", " << compute_s;
      }
      const SimMethod coded = over_all("allreduce", cluster, Codec::int8);
      EXPECT_NEAR(ratio_of(cluster, work_of(compute_s, 0), coded), 1, 0.003);
    }
  }
}

TEST(Crowds, SendAsMuchAsTheirMessages) {
  for (const Case& shape : kCases) {
    const ClusterSpec cluster = cluster_of(shape, 20e-6);
    for (const char* pattern : {"allreduce", "ddp", "cwa"}) {
      const SimMethod method = over_all(pattern, cluster);
      const auto all = run(cluster, work_of(0.01, 0), method, kFollowAll).traffic;
      const auto crowd = run(cluster, work_of(0.01, 0), method, kFollowNone).traffic;
      for (std::size_t h = 0; h < all.size(); ++h) {
        EXPECT_EQ(crowd[h].sent_bytes, all[h].sent_bytes);
        EXPECT_EQ(crowd[h].received_bytes, all[h].received_bytes);
        EXPECT_EQ(crowd[h].inside_bytes, all[h].inside_bytes);
        EXPECT_NEAR(static_cast<double>(crowd[h].sent_wire_bytes),
                    static_cast<double>(all[h].sent_wire_bytes),
                    1e-3 * static_cast<double>(all[h].sent_wire_bytes));
      }
    }
  }
}

TEST(Crowds, WaitForWhomIsLost) {
  const ClusterSpec cluster = even_cluster(3, 2);
  SimMethod method = over_all("allreduce", cluster);
  const SimResult result = simulate(
      cluster, {.buckets = {1000}, .compute = {.mean_s = ns(1000)}}, method,
      {.steps = 50, .losses = {{.at_s = ns(20'500), .worker = 4}}, .largest_group = kFollowNone});
  std::vector<int> waiting;
  for (const WaitsFor& wait : result.waits_for) {
    EXPECT_EQ(wait.peer, 4);
    waiting.push_back(wait.worker);
  }
  EXPECT_EQ(waiting, (std::vector<int>{0, 1, 2, 3, 5}));
}

TEST(Crowds, AThousandHostsAreCheap) {
  ClusterSpec cluster = even_cluster(1024, 1);
  const SimMethod method = over_all("allreduce", cluster);
  const Workload work = work_of(0.001, 0.1);
  EXPECT_GT(mean_step_s(simulate(cluster, work, method, {.steps = 3})), 0.04);
}

}  // namespace
}  // namespace gossamer
