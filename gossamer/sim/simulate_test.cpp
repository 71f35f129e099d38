// Cases worked out by hand, to the nanosecond.

#include "gossamer/sim/simulate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "gossamer/sim/sim_case.h"

namespace gossamer {
namespace {

using namespace sim_case;

using Ends = std::vector<std::int64_t>;

// Two workers on two hosts that exchange 4000 bytes, 50 ns of latency.
ClusterSpec two_hosts() {
  ClusterSpec cluster = even_cluster(2, 1);
  for (HostSpec& host : cluster.hosts) host.link.latency_s = ns(50);
  return cluster;
}

SimResult run_pair(const Workload& workload, std::int64_t steps, SimOptions options = {}) {
  options.steps = steps;
  options.framing = kNoOverhead;
  const ClusterSpec cluster = two_hosts();
  return simulate(cluster, workload, cwa("complete", cluster), options);
}

SimResult run_pair_of(const Workload& workload, const SimMethod& method) {
  return simulate(two_hosts(), workload, method, {.steps = 1, .framing = kNoOverhead});
}

TEST(Simulate, ComputeHidesTheExchange) {
  const SimResult result = run_pair({.buckets = {1000}, .compute = {.mean_s = ns(10000)}}, 3);
  EXPECT_EQ(ends_ns(result, 0), (Ends{10000, 20000, 30000}));
  EXPECT_EQ(result.steps[1][2].waited, SimTime(0));
}

TEST(Simulate, TheExchangeIsExposedWhereItIsLonger) {
  const SimResult result = run_pair({.buckets = {1000}, .compute = {.mean_s = ns(1000)}}, 3);
  EXPECT_EQ(ends_ns(result, 0), (Ends{4050, 8100, 12150}));
  EXPECT_EQ(result.steps[0][1].waited, SimTime(3050));
  EXPECT_DOUBLE_EQ(mean_step_s(result, 1), ns(4050));
  EXPECT_DOUBLE_EQ(mean_waited_s(result), ns(3050));
}

TEST(Simulate, DoublesAndFramesTakeMoreBytes) {
  const Workload workload{.buckets = {1448}, .dtype = DType::f64, .compute = {.mean_s = 0}};
  const ClusterSpec cluster = two_hosts();
  const SimResult result = simulate(cluster, workload, cwa("complete", cluster),
                                    {.steps = 2, .framing = {.message_s = ns(7)}});
  EXPECT_EQ(ends_ns(result, 0), (Ends{8 * 1514 + 57, 2 * (8 * 1514 + 57)}));
  EXPECT_EQ(result.traffic[0].sent_wire_bytes, 2 * 8 * 1514);
}

TEST(Simulate, ALateWorkerDelaysItsPartnerByTheSlackThatIsLeft) {
  Workload workload{.buckets = {100}, .compute = {.jitter = Jitter::trace}};
  workload.compute.trace = {{ns(1000)}, {ns(3000)}};
  const SimResult result = run_pair(workload, 3);
  EXPECT_EQ(ends_ns(result, 1), (Ends{3000, 6000, 9000}));
  // The payload of step t ≥ 1 leaves worker 1 at 3000 t and takes 450.
  EXPECT_EQ(ends_ns(result, 0), (Ends{1000, 3450, 6450}));
  EXPECT_EQ(result.steps[0][1].waited, SimTime(1450));
}

TEST(Simulate, BucketsAreUpdatedAsTheyCome) {
  // Two buckets of 1000 and 3000 bytes, one after the other: 1050, 4050. Updates take 100 and 300.
  const SimResult result =
      run_pair({.buckets = {250, 750}, .compute = {.mean_s = ns(2000)}, .update_s = ns(400)}, 2);
  // Step 0: bucket 0 is updated from 2000 to 2100 and sent again behind bucket 1, 4000 to 5000;
  // bucket 1 comes at 4050 and is updated to 4350, then travels from 5000 to 8000. Step 1: compute
  // to 6350, bucket 0 is there, bucket 1 at 8050.
  EXPECT_EQ(ends_ns(result, 0), (Ends{4350, 8350}));
  EXPECT_EQ(result.steps[0][0].waited, SimTime(1950));
  EXPECT_EQ(result.steps[0][1].waited, SimTime(8050 - 6450));
  EXPECT_EQ(result.steps[0], result.steps[1]);
}

TEST(Simulate, OfBucketsThatAreThereTheLatestIsUpdatedFirst) {
  const SimResult result =
      run_pair({.buckets = {10, 10, 10}, .compute = {.mean_s = ns(9000)}, .update_s = ns(300)}, 1,
               {.record_timeline = true});
  std::vector<int> order;
  for (const TimelineEvent& event : result.timeline) {
    if (event.kind == TimelineEvent::Kind::update && event.worker == 0) {
      EXPECT_EQ(event.begin, SimTime(9000 + 100 * static_cast<std::int64_t>(order.size())));
      order.push_back(event.bucket);
    }
  }
  EXPECT_EQ(order, (std::vector{2, 1, 0}));
}

/// two_hosts() whose workers have devices: a copy of n bytes takes n/2 + 20.
SimResult run_on_devices(const Workload& workload, const SimMethod& method, std::int64_t steps) {
  ClusterSpec cluster = two_hosts();
  for (HostSpec& host : cluster.hosts) {
    host.device = {.rate_bytes_per_s = 2e9, .latency_s = ns(20)};
  }
  return simulate(cluster, workload, method, {.steps = steps, .framing = kNoOverhead});
}

TEST(Simulate, CopiesOfDevicesComeBeforeAndBehindTheExchange) {
  // Buckets of 400 bytes: copies of 220, 450 on the link, of which 50 are latency.
  const Workload workload{.buckets = {100, 100}, .compute = {.mean_s = ns(1000)}};
  const SimMethod method = cwa("complete", two_hosts());
  const SimResult result = run_on_devices(workload, method, 2);
  // Out at 220 and 440, there at 670 and 1070, on the device at 890 and 1290. The later bucket
  // waits until 1290; the earlier is out again at 1220, the later at 1510: there at 1670 and 1960,
  // on the device at 1890 and 2180.
  EXPECT_EQ(ends_ns(result, 0), (Ends{1290, 2290}));
  EXPECT_EQ(result.steps[0][0].waited, SimTime(290));
  EXPECT_EQ(result.steps[0][1].waited, SimTime(0));
}

TEST(Simulate, WhereTheMixNeedsTheParametersTheUpdateCopiesThem) {
  const Workload workload{.buckets = {100}, .compute = {.mean_s = ns(1000)}};
  SimMethod skips = cwa("complete", two_hosts());
  skips.late = Late::skip;
  EXPECT_EQ(ends_ns(run_on_devices(workload, skips, 2), 0), (Ends{1440, 2880}));
}

TEST(Simulate, AllReduceOnDevicesCopiesGradientsAndDdpNothing) {
  const Workload workload{.buckets = {100}, .compute = {.mean_s = ns(1000)}};
  const SimMethod means = of_pattern("allreduce", cwa("complete", two_hosts()));
  const auto on_hosts = ends_ns(run_pair_of(workload, means), 0);
  const auto on_devices = ends_ns(run_on_devices(workload, means, 1), 0);
  EXPECT_EQ(on_devices[0] - on_hosts[0], 440);
  const SimMethod ddp = of_pattern("ddp", cwa("complete", two_hosts()));
  EXPECT_EQ(ends_ns(run_on_devices(workload, ddp, 1), 0), ends_ns(run_pair_of(workload, ddp), 0));
}

TEST(Simulate, UpdatesInTheBackward) {
  const ClusterSpec cluster = even_cluster(2, 1);
  SimMethod method = cwa("complete", cluster);
  method.update = UpdateAt::backward;
  const SimOptions options{.steps = 3, .framing = kNoOverhead};
  Workload workload{.buckets = {250, 250}, .compute = {.mean_s = ns(3000)}};
  EXPECT_EQ(ends_ns(simulate(cluster, workload, method, options), 0), (Ends{3000, 6000, 9000}));
  // Bucket 0 would be updated at 200 but comes at 1000; bucket 1 comes at 2000.
  workload.compute.mean_s = ns(300);
  const SimResult result = simulate(cluster, workload, method, options);
  EXPECT_EQ(ends_ns(result, 0), (Ends{2000, 4000, 6000}));
  EXPECT_EQ(result.steps[0][0].waited, SimTime(800 + 900));
}

TEST(Simulate, AWorkerGoesOnWhileItsParametersAreStillLeaving) {
  const ClusterSpec cluster = even_cluster(2, 1);
  const Workload workload{
      .buckets = {250},
      .compute = {.jitter = Jitter::trace, .trace = {{ns(100)}, {ns(3000), 0, 0}}}};
  const SimResult result =
      simulate(cluster, workload, cwa("complete", cluster), {.steps = 3, .framing = kNoOverhead});
  // Worker 1 sends from 3000 to 4000 what worker 0 waits for; what it needs itself came at 2000.
  // Its next payload leaves from 4000 to 5000, as does what it gets for it.
  EXPECT_EQ(ends_ns(result, 1), (Ends{3000, 3000, 5000}));
  EXPECT_EQ(ends_ns(result, 0), (Ends{1000, 4000, 5000}));
}

TEST(Simulate, ParametersThatAMateReadsAreBackOnceItHasUpdated) {
  const ClusterSpec cluster = even_cluster(1, 4);
  const Workload workload{
      .buckets = {250},
      .compute = {.jitter = Jitter::trace,
                  .trace = {{ns(100)}, {ns(1000), ns(100)}, {ns(100)}, {ns(100)}}}};
  const SimResult result = simulate(cluster, workload, cwa("one_peer_exponential", cluster),
                                    {.steps = 2, .framing = kNoOverhead});
  // Everybody hears from the next one, then from the one after it: worker 1 reads what worker 2
  // lent until it has updated itself, and worker 3 waits for worker 1.
  EXPECT_EQ(ends_ns(result, 0), (Ends{100, 200}));
  EXPECT_EQ(ends_ns(result, 1), (Ends{1000, 1100}));
  EXPECT_EQ(ends_ns(result, 2), (Ends{100, 1000}));
  EXPECT_EQ(ends_ns(result, 3), (Ends{100, 1000}));
}

TEST(Simulate, TheHierarchicalAverageGoesThroughItsPhases) {
  ClusterSpec cluster = even_cluster(2, 2);
  for (HostSpec& host : cluster.hosts) {
    host.link = {.rate_bytes_per_s = 1e8, .latency_s = ns(7)};
    host.inside = {.rate_bytes_per_s = 1e9, .latency_s = ns(3)};
  }
  const SimResult result = simulate(cluster, {.buckets = {64}, .compute = {.mean_s = 0}},
                                    cwa("complete", cluster), {.steps = 2, .framing = kNoOverhead});
  // Half the payload, 128 bytes, to the mate; both workers' halves over the link; and back.
  constexpr std::int64_t kStep = (128 + 3) + (2560 + 7) + (128 + 3);
  EXPECT_EQ(ends_ns(result, 3), (Ends{kStep, 2 * kStep}));
  EXPECT_EQ(result.traffic[1].sent_bytes, 2 * 256);
  EXPECT_EQ(result.traffic[1].inside_bytes, 2 * 4 * 128);
}

TEST(Simulate, AllReduceOverlapsTheBackward) {
  const ClusterSpec cluster = even_cluster(2, 1);
  const SimResult result = simulate(
      cluster, {.buckets = {250, 250}, .compute = {.mean_s = ns(3000)}, .update_s = ns(200)},
      of_pattern("allreduce"), {.steps = 2, .framing = kNoOverhead});
  // Bucket 0 leaves at 2000 and is there at 3000, updated to 3100; bucket 1 at 4000, to 4100.
  EXPECT_EQ(ends_ns(result, 0), (Ends{4100, 8200}));
  EXPECT_EQ(result.steps[0][0].waited, SimTime(900));
}

// T_AR = max(1 + γ/B, φ + (1 − φ)/B + γ), with a compute time of 1 and γ that of all buckets.
TEST(Simulate, DdpFollowsTheClosedForm) {
  constexpr std::int64_t kCompute = 48000;
  for (int ranks : {2, 4}) {
    for (int buckets : {1, 2, 4, 8}) {
      for (std::int64_t elements : {2048, 16384}) {
        const ClusterSpec cluster = even_cluster(ranks, 1);
        const std::int64_t gamma = elements * 4 * 2 * (ranks - 1) / ranks;
        const SimResult result = simulate(
            cluster, {.buckets = even_buckets(elements, buckets), .compute = {.mean_s = 48e-6}},
            of_pattern("ddp"), {.steps = 3, .framing = kNoOverhead});
        const std::int64_t backward_first = kCompute / 3 + kCompute * 2 / 3 / buckets;
        const std::int64_t step = std::max(kCompute + gamma / buckets, backward_first + gamma);
        EXPECT_EQ(ends_ns(result, ranks - 1), (Ends{step, 2 * step, 3 * step}))
            << ranks << " ranks, " << buckets << " buckets, " << elements;
      }
    }
  }
}

TEST(Simulate, DdpUpdatesOnceAllIsThere) {
  const SimResult result = simulate(
      even_cluster(2, 1), {.buckets = {250, 6}, .compute = {.mean_s = 0}, .update_s = ns(256)},
      of_pattern("ddp"), {.steps = 1, .framing = kNoOverhead});
  // Of 250 elements ranks send 112 and 138; of 6 all are in one part.
  EXPECT_EQ(ends_ns(result, 0), (Ends{2 * 138 * 4 + 2 * 24 + 256}));
}

TEST(Simulate, ALinkThatChanges) {
  const SimResult result =
      run_pair({.buckets = {1000}, .compute = {.mean_s = 0}}, 2,
               {.link_changes = {{ns(1000), 0, 0.5}, {ns(5050), 0, 2}, {ns(6050), 1, 2}}});
  // 1000 bytes in the first 1000 ns, 3000 at half the rate until 7000? Host 0 is back at 5050: 2025
  // bytes since 1000, the last 975 at 1 (host 1 limits) until 6025; then 4000 bytes from 6075,
  // at 2.
  EXPECT_EQ(ends_ns(result, 0), (Ends{6075, 6075 + 2000 + 50}));
}

TEST(Simulate, ALostWorkerStopsThoseThatNeedIt) {
  const ClusterSpec cluster = even_cluster(4, 1);
  const SimOptions options{
      .steps = 100, .framing = kNoOverhead, .losses = {{.at_s = ns(3900), .worker = 1}}};
  const Workload workload{.buckets = {100}, .compute = {.mean_s = ns(1000)}};
  SimMethod method = cwa("ring", cluster);
  const SimResult result = simulate(cluster, workload, method, options);
  EXPECT_EQ(result.steps[1].size(), 3u);
  // Its neighbours have its payload for step 3 and wait in step 4; worker 3 waits for them.
  EXPECT_EQ(result.steps[0].size(), 4u);
  EXPECT_EQ(result.steps[2].size(), 4u);
  EXPECT_EQ(result.steps[3].size(), 5u);
  const auto waits = [&](const WaitsFor& wanted) {
    return std::ranges::find(result.waits_for, wanted) != result.waits_for.end();
  };
  EXPECT_TRUE(waits({.worker = 0, .peer = 1, .step = 4, .bucket = 0, .is_receive = true}));
  EXPECT_TRUE(waits({.worker = 2, .peer = 1, .step = 4, .bucket = 0, .is_receive = true}));
  EXPECT_TRUE(waits({.worker = 0, .peer = 1, .step = 4, .bucket = 0, .is_receive = false}));
  EXPECT_TRUE(waits({.worker = 3, .peer = 0, .step = 5, .bucket = 0, .is_receive = true}));
  EXPECT_FALSE(waits({.worker = 0, .peer = 3, .step = 4, .bucket = 0, .is_receive = true}));

  method.late = Late::skip;
  const SimResult skipping = simulate(cluster, workload, method, options);
  EXPECT_TRUE(skipping.waits_for.empty());
  EXPECT_EQ(ends_ns(skipping, 0).back(), 100 * 1000);
  // Workers 0 and 2 took its last payload in step 3, and may use it in step 4.
  EXPECT_EQ(skipping.skipped, 2 * (100 - 5));
}

TEST(Simulate, WithSkipASlowLinkCarriesWhatItCan) {
  const ClusterSpec cluster = even_cluster(2, 1);
  SimMethod method = cwa("complete", cluster);
  method.late = Late::skip;
  const Workload workload{.buckets = {625}, .compute = {.mean_s = ns(1000)}};
  const SimResult result = simulate(cluster, workload, method,
                                    {.steps = 12, .framing = kNoOverhead, .record_messages = true});
  EXPECT_EQ(ends_ns(result, 0).back(), 12000);
  // Payloads leave at 0, 3000, 6000, 9000 and take 2500: in steps 2, 5, 8 and 11 there is a new
  // one, and the step after may use it again. Without one are steps 0, 1, 4, 7 and 10.
  EXPECT_EQ(result.messages.size(), 2u * 4);
  EXPECT_EQ(result.messages[7].arrived, SimTime(11500));
  EXPECT_EQ(result.skipped, 2 * 5);
}

TEST(Simulate, WhatDoesNotFitIsRefused) {
  const ClusterSpec cluster = even_cluster(4, 1);
  const Workload workload{.buckets = {100}, .compute = {.mean_s = 0}};
  const auto refused = [&](const SimMethod& method, const SimOptions& options = {}) {
    EXPECT_THROW(simulate(cluster, workload, method, options), std::invalid_argument);
  };
  const SimMethod good = cwa("ring", cluster);
  EXPECT_NO_THROW(simulate(cluster, workload, good, {.steps = 1}));
  EXPECT_TRUE(simulate(cluster, workload, good, {.steps = 0}).steps[0].empty());
  refused(cwa("ring", even_cluster(3, 1)));
  refused({.pattern = &ddp_facts(), .late = Late::skip});
  refused({.pattern = &ddp_facts(), .group_method = GroupMethod::ring, .codec = Codec::int8});
  refused(good, {.steps = -1});
  refused(good, {.link_changes = {{.host = 4}}});
  refused(good, {.link_changes = {{.factor = -1}}});
  refused(good, {.losses = {{.worker = 4}}});
  refused(good, {.framing = {.payload_bytes = 0}});
  EXPECT_TRUE(std::isnan(mean_step_s(simulate(cluster, workload, good, {.steps = 3}), 3)));
}

}  // namespace
}  // namespace gossamer
