#include "gossamer/model/max_plus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "gossamer/graph/topology.h"
#include "gossamer/model/link_load.h"
#include "gossamer/model/step_time.h"

namespace gossamer {
namespace {

ClusterSpec cluster_of(const HostShape& shape, const LinkSpec& link) {
  ClusterSpec cluster;
  for (int workers : shape.workers_per_host) cluster.hosts.push_back({workers, link, {}});
  return cluster;
}

/// A link on which `bytes` take `seconds`.
LinkSpec link_for(double bytes, double seconds) { return {.rate_bytes_per_s = bytes / seconds}; }

Schedule pairs(const HostShape& shape, std::vector<std::vector<int>> groups) {
  return periodic_schedule("pairs", shape, {partition_round(shape.workers(), std::move(groups))});
}

TEST(StepTimes, OfAllReduceAreTheClosedForm) {
  int cases = 0;
  for (const HostShape& shape : {even_hosts(2, 1), even_hosts(4, 2), even_hosts(8, 1),
                                 even_hosts(3, 4), even_hosts(16, 2)}) {
    for (int buckets : {1, 2, 5, 16}) {
      for (double phi : {0.0, 1.0 / 3, 1.0}) {
        for (double gamma : {0.01, 0.3, 0.9, 2.05, 7.0}) {
          const int n = shape.workers();
          const std::int64_t elements = 16LL * n * buckets;  // equal chunks of whole cache lines
          const double bytes = 4.0 * static_cast<double>(elements) * 2 * (n - 1) / n;
          const StepTimes times =
              step_times(cluster_of(shape, link_for(bytes, gamma)),
                         {.buckets = even_buckets(elements, buckets), .forward_share = phi},
                         complete_schedule(shape), allreduce_options());
          const double expected =
              allreduce_time({.gamma = gamma, .buckets = buckets, .forward_share = phi});
          ASSERT_NEAR(times.mean_step_s / expected, 1, 1e-9)
              << n << " workers, " << buckets << " buckets, phi " << phi << ", gamma " << gamma;
          ASSERT_NEAR(times.exposed_s, expected - 1, 1e-9 * expected);
          ASSERT_NEAR(times.link_s / gamma, 1, 1e-9);
          ++cases;
        }
      }
    }
  }
  EXPECT_EQ(cases, 300);
}

/// Seconds of link that every host needs in every round for a whole payload; negative where hosts
/// or rounds differ, which the closed form does not know.
double common_load_s(const Schedule& schedule, std::int64_t elements, const LinkSpec& link) {
  double common = -1;
  for (std::int64_t t = 0; t < schedule.period; ++t) {
    const ExchangedPayload payload{.elements = elements};
    for (const HostLoad& load : host_loads(round_at(schedule, t), schedule.shape, payload)) {
      const auto bytes = static_cast<double>(std::max(load.sent_bytes, load.received_bytes));
      const double seconds = bytes / link.rate_bytes_per_s;
      if (common >= 0 && std::abs(seconds - common) > 1e-12) return -1;
      common = seconds;
    }
  }
  return common;
}

TEST(StepTimes, OfDecentralizedSchedulesAreTheClosedForm) {
  int cases = 0;
  for (const Topology& topology : topologies()) {
    for (const HostShape& shape : {even_hosts(2, 1), even_hosts(4, 1), even_hosts(6, 1),
                                   even_hosts(16, 1), even_hosts(4, 2), even_hosts(8, 4)}) {
      Schedule schedule;
      try {
        schedule = topology.make({.shape = shape});
      } catch (const std::invalid_argument&) {
        continue;  // a size that this topology does not serve
      }
      for (int buckets : {1, 4}) {
        const std::int64_t elements = 16LL * shape.workers() * shape.hosts() * buckets;
        for (double payload_s : {0.05, 0.4, 1.5}) {
          const LinkSpec link = link_for(4.0 * static_cast<double>(elements), payload_s);
          const double load = common_load_s(schedule, elements, link);
          if (load <= 0) continue;
          for (LaunchAt at : {LaunchAt::step, LaunchAt::backward}) {
            for (bool stagger : {false, true}) {
              const StepTimes times =
                  step_times(cluster_of(shape, link), {.buckets = even_buckets(elements, buckets)},
                             schedule, {.launch_at = at, .stagger = stagger});
              const double expected = decentralized_time({.gamma = 1, .omega = load});
              ASSERT_NEAR(times.mean_step_s / expected, 1, 1e-9)
                  << topology.name << " on " << shape.hosts() << " hosts, " << buckets
                  << " buckets, load " << load << ", staggered " << stagger;
              ++cases;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(cases, 400);
}

TEST(StepTimes, StaggeringSharesTheLoadOfAlternatingRounds) {
  const HostShape shape = even_hosts(4, 2);
  const Schedule aer = make_topology("aer", {.shape = shape});
  const std::int64_t elements = 1 << 14;
  const ClusterSpec cluster = cluster_of(shape, link_for(4.0 * static_cast<double>(elements), 2));
  const Workload work{.buckets = even_buckets(elements, 4)};
  // Hosts that cross need 2, those that do not compute for 1, and they take turns.
  EXPECT_NEAR(step_times(cluster, work, aer, {.stagger = false}).mean_step_s, 1.5, 1e-9);
  EXPECT_NEAR(step_times(cluster, work, aer, {}).mean_step_s, 1, 1e-9);
  EXPECT_NEAR(busiest_link_s(cluster, work, aer, {}, 0), 1, 1e-9);
  EXPECT_NEAR(busiest_link_s(cluster, work, aer, {.stagger = false}, 0), 2, 1e-9);
}

TEST(StepTimes, WorkedByHandWithAStragglerAndLatency) {
  const HostShape shape = even_hosts(2, 1);
  ClusterSpec cluster = cluster_of(shape, link_for(4 * 16, 1));
  for (HostSpec& host : cluster.hosts) host.link.latency_s = 0.5;
  const Workload work{.buckets = {16, 16}, .compute = {.factors = {1, 3}}};
  const StepTimes times =
      step_times(cluster, work, pairs(shape, {{0, 1}}), {.steps = 2, .warm_up = 1});
  // Round 0 arrives at 1.5 and 2.5, round 1, launched when worker 1 is done at 3, at 4.5 and 5.5.
  const std::vector<std::vector<double>> starts = {{0, 0}, {2.5, 3}, {5.5, 6}, {8.5, 9}};
  EXPECT_EQ(times.start_s, starts);
  EXPECT_DOUBLE_EQ(times.mean_step_s, 3);
  EXPECT_DOUBLE_EQ(times.compute_s, 2);
  EXPECT_DOUBLE_EQ(times.exposed_s, 1);
  EXPECT_DOUBLE_EQ(times.link_s, 2);
}

TEST(StepTimes, OfAllReduceWorkedByHandWithAStraggler) {
  const HostShape shape = even_hosts(2, 1);
  const ClusterSpec cluster = cluster_of(shape, link_for(4 * 32, 1));
  const Workload work{.buckets = {32, 32}, .compute = {.factors = {2, 4}}, .forward_share = 0.5};
  MaxPlusOptions options = allreduce_options();
  options.steps = 2;
  options.warm_up = 0;
  const std::vector<std::vector<double>> starts = {{0, 0}, {5, 5}, {10, 10}};
  // Gradients of the slow worker at 3 and 4; the second bucket is on the link from 4 to 5.
  EXPECT_EQ(step_times(cluster, work, complete_schedule(shape), options).start_s, starts);
  // Nothing is sent before the backward is over at 4.
  options.launch_at = LaunchAt::step;
  EXPECT_DOUBLE_EQ(step_times(cluster, work, complete_schedule(shape), options).mean_step_s, 6);
}

TEST(StepTimes, TheUpdateComesBeforeTheExchangeOfParametersAndAfterThatOfGradients) {
  const HostShape shape = even_hosts(2, 1);
  const ClusterSpec cluster = cluster_of(shape, link_for(4 * 32, 4));
  const Workload work{.buckets = {8, 24}, .update_s = 2};
  MaxPlusOptions options{.steps = 2, .warm_up = 0};
  // Buckets are on the link for 1 and 3. Exchanges of step 0 are there at 1 and 4; the first bucket
  // is updated from 1 to 1.5 and its next exchange takes from 4 to 5, the second from 4 to 5.5, and
  // 5.5 to 8.5; then from 6.5 to 7, 8.5 to 9.5 and 8.5 to 10.
  const Schedule schedule = pairs(shape, {{0, 1}});
  const StepTimes mixed = step_times(cluster, work, schedule, options);
  EXPECT_EQ(mixed.start_s, (std::vector<std::vector<double>>{{0, 0}, {5.5, 5.5}, {10, 10}}));
  EXPECT_DOUBLE_EQ(mixed.compute_s, 3);
  options = allreduce_options();
  options.steps = 2;
  options.warm_up = 0;
  // Gradients at 1/3 + 1/6 and 1; on the link until 1.5 and 4.5; the update ends at 6.5.
  EXPECT_DOUBLE_EQ(step_times(cluster, work, complete_schedule(shape), options).start_s[1][0], 6.5);
}

ClusterSpec with_devices(ClusterSpec cluster, const LinkSpec& device) {
  for (HostSpec& host : cluster.hosts) host.device = device;
  return cluster;
}

TEST(StepTimes, CopiesOfDevicesComeBeforeAndBehindTheExchange) {
  const HostShape shape = even_hosts(2, 1);
  // Buckets of 64 bytes are on the link for 1, in a copy for 2, of which 0.5 are latency.
  const LinkSpec device{.rate_bytes_per_s = 64 / 1.5, .latency_s = 0.5};
  const ClusterSpec cluster = with_devices(cluster_of(shape, link_for(4 * 16, 1)), device);
  const Workload work{.buckets = {16, 16}, .compute = {.mean_s = 1}};
  const MaxPlusOptions ahead{.steps = 2, .warm_up = 0};
  // Out of the device at 2 and 4, at the peer at 3 and 5, on its device at 5 and 7. The first
  // bucket is updated at 5, and out at 7; the second at 7 and 9: there at 8 and 10, on the device
  // at 10 and 12.
  const auto starts = step_times(cluster, work, pairs(shape, {{0, 1}}), ahead).start_s;
  EXPECT_EQ(starts, (std::vector<std::vector<double>>{{0, 0}, {7, 7}, {12, 12}}));
  // Where the mix needs the parameters, four copies of 2 are in each update.
  MaxPlusOptions within = ahead;
  within.device_copies = DeviceCopies::parameters;
  EXPECT_DOUBLE_EQ(step_times(cluster, work, pairs(shape, {{0, 1}}), within).mean_step_s, 9);
  // Both gradients are there at 1, out at 3 and 5, averaged at 4 and 6, back at 6 and 8.
  MaxPlusOptions gradients{.launch_at = LaunchAt::step,
                           .result_needed = ResultNeeded::same_step,
                           .updates_last = true,
                           .device_copies = DeviceCopies::gradients,
                           .steps = 2,
                           .warm_up = 0};
  EXPECT_DOUBLE_EQ(step_times(cluster, work, pairs(shape, {{0, 1}}), gradients).mean_step_s, 8);
  gradients.device_copies = DeviceCopies::none;
  EXPECT_DOUBLE_EQ(step_times(cluster, work, pairs(shape, {{0, 1}}), gradients).mean_step_s, 3);
}

TEST(StepTimes, WhoIsAloneInARoundCopiesNothing) {
  const HostShape shape = even_hosts(3, 1);
  const ClusterSpec cluster =
      with_devices(cluster_of(shape, link_for(4 * 16, 1)), {.rate_bytes_per_s = 4 * 16});
  const auto starts = step_times(cluster, {.buckets = {16}}, pairs(shape, {{0, 1}, {2}}),
                                 {.steps = 1, .warm_up = 0})
                          .start_s;
  EXPECT_EQ(starts[1], (std::vector<double>{3, 3, 1}));
}

TEST(StepTimes, AnExchangeThatIsReadyDoesNotWaitForALateOneOnTheSameLink) {
  const HostShape shape = even_hosts(2, 2);
  const ClusterSpec cluster = cluster_of(shape, link_for(4 * 16, 1));
  const ComputeTimes compute{.jitter = Jitter::trace, .trace = {{3, 1}, {1, 1}, {1, 1}, {1, 1}}};
  const StepTimes times = step_times(cluster, {.buckets = {16}, .compute = compute},
                                     pairs(shape, {{0, 2}, {1, 3}}), {.steps = 2, .warm_up = 0});
  const std::vector<std::vector<double>> starts = {{0, 0, 0, 0}, {3, 2, 1, 2}, {4, 3, 4, 3}};
  EXPECT_EQ(times.start_s, starts);
}

TEST(StepTimes, APersistentlySlowWorkerSlowsAllToItsRate) {
  const HostShape shape = even_hosts(8, 1);
  Workload work{.buckets = {1024}};
  work.compute.factors.assign(8, 1);
  work.compute.factors[3] = 2.5;
  for (const char* name : {"ring", "one_peer_exponential", "aer", "complete"}) {
    const Schedule schedule = make_topology(name, {.shape = shape});
    EXPECT_NEAR(step_times(cluster_of(shape, {}), work, schedule).mean_step_s, 2.5, 1e-9) << name;
  }
  EXPECT_NEAR(step_times(cluster_of(shape, {}), work, alone_schedule(shape)).mean_step_s,
              (7 + 2.5) / 8, 1e-9);
}

TEST(StepTimes, JitterCostsAllReduceSigmaKappaAndARingLess) {
  const HostShape shape = even_hosts(16, 1);
  constexpr double kSigma = 0.1;
  constexpr double kGamma = 0.05;
  constexpr int kBuckets = 5;
  constexpr int kSteps = 4000;
  constexpr std::uint64_t kSeed = 11;
  const std::int64_t elements = 16LL * 16 * kBuckets;
  const double bytes = 4.0 * static_cast<double>(elements) * 30 / 16;
  const ClusterSpec cluster = cluster_of(shape, link_for(bytes, kGamma));
  Workload work{.buckets = even_buckets(elements, kBuckets)};
  work.compute = {.jitter = Jitter::normal, .deviation_s = kSigma, .seed = kSeed};
  MaxPlusOptions options = allreduce_options();
  options.steps = kSteps;
  const double all = step_times(cluster, work, complete_schedule(shape), options).mean_step_s;
  const double expected =
      allreduce_time_with_stragglers({.gamma = kGamma, .buckets = kBuckets}, kSigma, 16);
  // The maximum of 16 normals deviates by about .55 σ; four standard errors.
  EXPECT_NEAR(all, expected, 4 * 0.55 * kSigma / std::sqrt(kSteps));
  const Schedule ring = make_topology("ring", {.shape = shape});
  const StepTimes slack = step_times(cluster, work, ring, {.steps = kSteps});
  EXPECT_LT(slack.mean_step_s, all - 0.05);
  EXPECT_GT(slack.mean_step_s, 1 + 0.01);
}

TEST(StepTimes, NeverUndercutComputeOrBytesAndNeverGoBack) {
  for (const Topology& topology : topologies()) {
    for (const HostShape& shape : {even_hosts(8, 1), even_hosts(4, 4), HostShape{{3, 1, 2}}}) {
      Schedule schedule;
      try {
        schedule = topology.make({.shape = shape, .seed = 3});
      } catch (const std::invalid_argument&) {
        continue;
      }
      ClusterSpec cluster = cluster_of(shape, {.rate_bytes_per_s = 4000, .latency_s = 0.01});
      cluster.hosts.front().inside.rate_bytes_per_s = 1e5;
      Workload work{.buckets = even_buckets(1000, 3)};
      work.compute = {.jitter = Jitter::lognormal, .deviation_s = 0.3, .seed = 7};
      for (LaunchAt at : {LaunchAt::step, LaunchAt::backward}) {
        for (ResultNeeded needed : {ResultNeeded::next_step, ResultNeeded::same_step}) {
          const StepTimes times =
              step_times(cluster, work, schedule, {.launch_at = at, .result_needed = needed});
          for (std::size_t t = 1; t < times.start_s.size(); ++t) {
            for (std::size_t i = 0; i < times.start_s[t].size(); ++i) {
              ASSERT_GT(times.start_s[t][i], times.start_s[t - 1][i]) << topology.name << " " << t;
            }
          }
          // Over finitely many steps a link may be behind by the exchanges of one step.
          const double slack = 0.02 * times.link_s + 0.02;
          EXPECT_GE(times.mean_step_s, times.link_s - slack) << topology.name;
          EXPECT_GE(times.mean_step_s, times.compute_s - slack) << topology.name;
        }
      }
    }
  }
}

TEST(StepTimes, CodecOverheadAndLinksInsideCount) {
  const HostShape shape = even_hosts(2, 2);
  const Schedule schedule = complete_schedule(shape);
  ClusterSpec cluster = cluster_of(shape, link_for(4 * 1024, 3));
  const Workload work{.buckets = {1024}};
  EXPECT_NEAR(step_times(cluster, work, schedule).link_s, 3, 1e-9);
  EXPECT_NEAR(step_times(cluster, work, schedule, {.plan = {.codec = Codec::bf16}}).link_s, 1.5,
              1e-9);
  EXPECT_NEAR(step_times(cluster, work, schedule, {.overhead = kEthernetOverhead}).mean_step_s,
              3 * 1514.0 / 1448, 1e-9);
  // Before and after the link each of two workers sends half of the payload to the other.
  cluster.hosts[0].inside.rate_bytes_per_s = 4 * 1024 / 5.0;
  EXPECT_NEAR(step_times(cluster, work, schedule).mean_step_s, 3 + 5, 1e-9);
}

TEST(StepTimes, RefuseWhatDoesNotFit) {
  const HostShape shape = even_hosts(2, 1);
  const ClusterSpec cluster = cluster_of(shape, {});
  const Schedule schedule = complete_schedule(shape);
  const Workload work{.buckets = {1}};
  EXPECT_THROW(step_times(cluster_of(even_hosts(1, 2), {}), work, schedule), std::invalid_argument);
  EXPECT_THROW(step_times(cluster_of(shape, {.rate_bytes_per_s = 0}), work, schedule),
               std::invalid_argument);
  EXPECT_THROW(step_times(cluster, {}, schedule), std::invalid_argument);
  EXPECT_THROW(step_times(cluster, {.buckets = {-1}}, schedule), std::invalid_argument);
  EXPECT_THROW(step_times(cluster, work, schedule, {.overhead = 0.5}), std::invalid_argument);
  EXPECT_THROW(step_times(cluster, work, schedule, {.steps = 0}), std::invalid_argument);
  EXPECT_THROW(even_buckets(10, 0), std::invalid_argument);
}

TEST(EvenBuckets, CoverTheElements) {
  EXPECT_EQ(even_buckets(10, 3), (std::vector<std::int64_t>{3, 3, 4}));
}

}  // namespace
}  // namespace gossamer
