// What holds for every topology and shape: byte limits, conservation, symmetry, repeatability.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "gossamer/graph/modifiers.h"
#include "gossamer/sim/sim_case.h"

namespace gossamer {
namespace {

using namespace sim_case;

/// A case whose step takes max(compute, what the busiest link needs): `payloads` per host and step.
struct LimitCase {
  const char* topology;
  int hosts;
  int per_host;
  int buckets;
  double payloads;
};

// From the rules of the topologies. Buckets are staggered: with as many as the period has rounds,
// or a multiple, every step carries a whole period's traffic in parts.
constexpr LimitCase kLimits[] = {
    {"complete", 2, 1, 1, 1},
    {"complete", 4, 1, 1, 1.5},
    {"complete", 4, 2, 1, 1.5},
    {"complete", 3, 4, 1, 4.0 / 3},
    {"complete", 8, 1, 4, 1.75},
    {"ring", 4, 1, 1, 2},
    {"ring", 5, 1, 1, 2},
    {"ring", 4, 3, 1, 2},
    {"ring", 4, 1, 4, 2},
    {"one_peer_ring", 6, 1, 1, 1},
    {"one_peer_ring", 4, 2, 2, 1},
    {"aer", 4, 1, 4, 0.5},
    {"aer", 4, 2, 4, 0.5},
    {"aer", 4, 2, 8, 0.5},
    {"aer", 8, 4, 6, 0.5},
    {"one_peer_exponential", 8, 1, 1, 1},
    {"one_peer_exponential", 5, 1, 1, 1},
};

constexpr std::int64_t kElements = 3 * 16 * 64;

class Limits : public testing::TestWithParam<LimitCase> {};

// Without jitter. Exact: rates are whole bytes per ns or halves of them, so that nothing is
// rounded.
TEST_P(Limits, AStepTakesTheComputeOrTheBytesOfTheBusiestLink) {
  const LimitCase& c = GetParam();
  const ClusterSpec cluster = even_cluster(c.hosts, c.per_host);
  const SimMethod method = cwa(c.topology, cluster);
  const auto bytes_ns = std::llround(c.payloads * 4 * kElements);
  for (const auto compute_ns : {bytes_ns / 4, bytes_ns, 3 * bytes_ns}) {
    const Workload workload{.buckets = even_buckets(kElements, c.buckets),
                            .compute = {.mean_s = ns(static_cast<double>(compute_ns))}};
    const SimResult result =
        simulate(cluster, workload, method, {.steps = 72, .framing = kNoOverhead});
    const std::int64_t expected = std::max<std::int64_t>(compute_ns, bytes_ns);
    for (int w = 0; w < c.hosts * c.per_host; ++w) {
      const std::vector<std::int64_t> ends = ends_ns(result, w);
      // Whole periods, after the first steps, in which some still have slack.
      ASSERT_EQ(ends[71] - ends[23], 48 * expected)
          << "worker " << w << ", compute " << compute_ns << " ns";
    }
  }
}

// Of one bucket, which has nothing to compute while its gradient travels.
TEST(SimProperties, GradientsTakeTheirBytesBehindTheBackward) {
  for (const UpdateAt update : {UpdateAt::step, UpdateAt::backward}) {
    const ClusterSpec cluster = even_cluster(4, 1);
    SimMethod method = cwa("ring", cluster);
    method.pattern = &facts("gradient_gossip");
    method.update = update;
    const std::int64_t bytes_ns = 2 * 4 * kElements;
    for (const auto compute_ns : {bytes_ns / 4, bytes_ns, 3 * bytes_ns}) {
      const Workload workload{.buckets = {kElements},
                              .compute = {.mean_s = ns(static_cast<double>(compute_ns))}};
      const SimResult result =
          simulate(cluster, workload, method, {.steps = 12, .framing = kNoOverhead});
      const std::vector<std::int64_t> ends = ends_ns(result, 0);
      EXPECT_EQ(ends[11] - ends[1], 10 * (std::max(compute_ns, bytes_ns) + bytes_ns)) << compute_ns;
    }
  }
}

std::string case_name(const testing::TestParamInfo<LimitCase>& info) {
  const LimitCase& c = info.param;
  return std::string(c.topology) + "_" + std::to_string(c.hosts) + "x" +
         std::to_string(c.per_host) + "_b" + std::to_string(c.buckets);
}

INSTANTIATE_TEST_SUITE_P(Topologies, Limits, testing::ValuesIn(kLimits), case_name);

/// What a method sends in each step, from its Plans: (from, to, bytes, step, bucket, phase).
using Sent = std::tuple<int, int, std::int64_t, std::int64_t, int, int>;

std::vector<Sent> sends_of_plans(const HostShape& shape, const Workload& workload,
                                 const SimMethod& method, std::int64_t steps) {
  const bool follows = method.pattern->rounds == Rounds::schedule;
  const std::size_t exchanges = method.pattern->payloads.size() + method.pattern->then.size();
  std::vector<Sent> all;
  for (int worker = 0; worker < shape.workers(); ++worker) {
    for (std::int64_t step = 0; step < steps; ++step) {
      for (int b = 0; b < static_cast<int>(workload.buckets.size()); ++b) {
        const Round round = follows ? round_at(method.schedule, step + (method.stagger ? b : 0))
                                    : complete_round(shape.workers());
        const Plan plan =
            compile(round, shape, worker, workload.buckets[static_cast<std::size_t>(b)],
                    {.group_method = method.group_method,
                     .finished_averages = !follows,
                     .codec = method.codec});
        for (std::size_t p = 0; p < plan.phases.size(); ++p) {
          for (const Message& message : plan.phases[p].sends) {
            const auto bytes = bytes_of(plan, message.slice, workload.dtype);
            all.insert(all.end(), exchanges,
                       {worker, message.peer, static_cast<std::int64_t>(bytes), step, b,
                        static_cast<int>(p)});
          }
        }
      }
    }
  }
  std::ranges::sort(all);
  return all;
}

void expect_the_plans(const ClusterSpec& cluster, const SimMethod& method,
                      const std::string& about) {
  constexpr std::int64_t kSteps = 7;
  const Workload workload{.buckets = {100, 333, 0, 64}, .compute = {.mean_s = 1e-6}};
  const SimResult result =
      simulate(cluster, workload, method, {.steps = kSteps, .record_messages = true});
  const HostShape shape = cluster.shape();
  const std::vector<Sent> expected = sends_of_plans(shape, workload, method, kSteps);
  std::vector<Sent> sent;
  for (const TimelineMessage& m : result.messages) {
    sent.push_back({m.from, m.to, m.bytes, m.step, m.bucket, m.phase});
    EXPECT_LE(m.sent, m.begun);
    EXPECT_LE(m.begun, m.left);
    EXPECT_LE(m.left, m.arrived);
  }
  std::ranges::sort(sent);
  EXPECT_EQ(sent, expected) << about;
  EXPECT_TRUE(result.waits_for.empty()) << about;
  std::vector<LinkTraffic> traffic(cluster.hosts.size());
  for (const auto& [from, to, bytes, step, bucket, phase] : expected) {
    LinkTraffic& sender = traffic[static_cast<std::size_t>(shape.host_of(from))];
    LinkTraffic& receiver = traffic[static_cast<std::size_t>(shape.host_of(to))];
    if (&sender == &receiver) {
      sender.inside_bytes += bytes;
      continue;
    }
    sender.sent_bytes += bytes;
    receiver.received_bytes += bytes;
    sender.sent_wire_bytes += bytes_on_wire({}, bytes);
    receiver.received_wire_bytes += bytes_on_wire({}, bytes);
  }
  EXPECT_EQ(result.traffic, traffic) << about;
}

TEST(SimProperties, EverythingThePlansSendIsSentOnceAndCounted) {
  for (const std::vector<int>& shape : {std::vector<int>{4, 4}, {1, 2, 4}, {1, 1, 1, 1, 1}, {3}}) {
    ClusterSpec cluster;
    for (int workers : shape) cluster.hosts.push_back({workers, {1e9, 1e-7}, {8e9, 1e-8}});
    for (const Topology& topology : topologies()) {
      SimMethod method;
      try {
        method.schedule = topology.make({.shape = cluster.shape(), .seed = 3});
      } catch (const std::invalid_argument&) {
        continue;  // a size it cannot serve
      }
      const std::string about = std::string(topology.name) + " on " + std::to_string(shape.size());
      expect_the_plans(cluster, method, about);
      method.codec = Codec::int8;
      expect_the_plans(cluster, method, about + ", int8");
      method.codec = Codec::fp32;
      method.group_method = GroupMethod::ring;
      method.stagger = false;
      expect_the_plans(cluster, method, about + ", ring groups");
      for (const PatternFacts& pattern : pattern_facts()) {
        method.pattern = &pattern;
        for (const UpdateAt update : {UpdateAt::step, UpdateAt::backward}) {
          method.update = update;
          expect_the_plans(cluster, method, about + ", " + std::string(pattern.name));
        }
      }
    }
    expect_the_plans(cluster, of_pattern("allreduce"), "allreduce");
    expect_the_plans(cluster, of_pattern("ddp"), "ddp");
  }
}

Workload jittery(std::uint64_t seed) {
  return {.buckets = even_buckets(20000, 5),
          .compute = {
              .jitter = Jitter::lognormal, .mean_s = 6e-5, .deviation_s = 1.8e-5, .seed = seed}};
}

TEST(SimProperties, EqualSeedsGiveEqualRuns) {
  const ClusterSpec cluster = even_cluster(4, 2);
  const SimOptions options{.steps = 40, .record_messages = true, .record_timeline = true};
  const auto run = [&](std::uint64_t seed) {
    return simulate(cluster, jittery(seed), cwa("aer", cluster), options);
  };
  const SimResult first = run(9);
  EXPECT_EQ(first, run(9));
  EXPECT_NE(mean_step_s(first), mean_step_s(run(10)));
}

// The complete graph looks the same to every host. Rounding may differ by 1 ns per transfer.
TEST(SimProperties, TheOrderOfTheHostsDoesNotMatter) {
  constexpr int kSteps = 20;
  std::vector<int> order{0, 1, 2, 3};
  const double rates[] = {1e9, 5e8, 2e9, 3e9};
  const double factors[] = {1, 1.5, 1, 0.5};
  const auto mean = [&] {
    ClusterSpec cluster = even_cluster(4, 2);
    Workload workload{.buckets = {1024, 2048}, .compute = {.mean_s = 1e-5}};
    for (std::size_t h = 0; h < order.size(); ++h) {
      const auto from = static_cast<std::size_t>(order[h]);
      cluster.hosts[h].link.rate_bytes_per_s = rates[from];
      workload.compute.factors.insert(workload.compute.factors.end(), 2, factors[from]);
    }
    return mean_step_s(simulate(cluster, workload, cwa("complete", cluster), {.steps = kSteps}));
  };
  const double first = mean();
  while (std::ranges::next_permutation(order).found) {
    ASSERT_NEAR(mean(), first, ns(10)) << order[0] << order[1] << order[2] << order[3];
  }
}

// A ring looks the same after a rotation.
TEST(SimProperties, ARotatedRingTakesTheSameTime) {
  const auto mean = [&](int shift) {
    const ClusterSpec cluster = even_cluster(6, 1);
    Workload workload{.buckets = {500}, .compute = {.mean_s = 3e-6}};
    for (int w = 0; w < 6; ++w) workload.compute.factors.push_back((w + shift) % 6 == 0 ? 2 : 1);
    return mean_step_s(simulate(cluster, workload, cwa("ring", cluster), {.steps = 30}));
  };
  for (int shift = 1; shift < 6; ++shift) EXPECT_NEAR(mean(shift), mean(0), ns(1));
}

TEST(SimProperties, AStragglerSlowsAllWithWaitAndNobodyWithSkip) {
  const ClusterSpec cluster = even_cluster(8, 1);
  Workload workload{.buckets = {100}, .compute = {.mean_s = 1e-5}};
  workload.compute.factors = {1, 1, 1, 3, 1, 1, 1, 1};
  SimMethod method = cwa("one_peer_ring", cluster);
  const SimOptions options{.steps = 60};
  const SimResult waiting = simulate(cluster, workload, method, options);
  for (std::size_t w = 0; w < 8; ++w) {
    const auto& steps = waiting.steps[w];
    EXPECT_EQ(steps[59].end - steps[29].end, nearest_ns(30 * 3e-5)) << "worker " << w;
  }
  method.late = Late::skip;
  const SimResult skipping = simulate(cluster, workload, method, options);
  for (std::size_t w = 0; w < 8; ++w) {
    EXPECT_EQ(skipping.steps[w][59].end, nearest_ns((w == 3 ? 3 : 1) * 60e-5)) << "worker " << w;
    EXPECT_EQ(mean_waited_s(skipping), 0);
  }
  EXPECT_GT(skipping.skipped, 0);
}

// A worker that is ahead on a directed graph: what it sends is not stored anywhere on the way.
TEST(SimProperties, APayloadMovesOnceItsReceiverHasAskedForIt) {
  const ClusterSpec cluster = even_cluster(8, 1);
  const Workload workload{
      .buckets = {100},
      .compute = {.jitter = Jitter::lognormal, .mean_s = 1e-5, .deviation_s = 1e-5}};
  const SimResult result = simulate(cluster, workload, cwa("one_peer_exponential", cluster),
                                    {.steps = 100, .record_messages = true});
  int held = 0;
  int ahead = 0;
  for (const TimelineMessage& message : result.messages) {
    if (message.step < 2) continue;
    // The receive of a step is posted when the exchange before it is launched.
    const auto before = static_cast<std::size_t>(message.step - 2);
    const SimTime asked = result.steps[static_cast<std::size_t>(message.to)][before].end;
    EXPECT_GE(message.begun, asked);
    EXPECT_GE(message.begun, message.sent);
    held += message.sent < asked ? 1 : 0;
    const SimTime launched = result.steps[static_cast<std::size_t>(message.to)][before + 1].end;
    ahead += message.begun < launched ? 1 : 0;
  }
  EXPECT_GT(held, 0);
  EXPECT_GT(ahead, 0);
}

// Rounds that never repeat, and those that leave links idle.
TEST(SimProperties, SchedulesWithoutPeriodAndWithGlobalAverages) {
  const ClusterSpec cluster = even_cluster(6, 1);
  const Workload workload{.buckets = {160, 160}, .compute = {.mean_s = 1e-7}};
  SimMethod method = cwa("random", cluster);
  if (method.schedule.period > 0) method.schedule = with_local_steps(method.schedule, 2);
  EXPECT_TRUE(simulate(cluster, workload, method, {.steps = 300}).waits_for.empty());
  method.schedule = with_global_average(cwa("ring", cluster).schedule, 3);
  method.stagger = false;
  const SimResult result = simulate(cluster, {.buckets = {960}, .compute = {.mean_s = 0}}, method,
                                    {.steps = 6, .framing = kNoOverhead});
  // Twice two payloads, then 2·5/6 of one: 3840 bytes each.
  const std::int64_t period = 2 * 2 * 3840 + 2 * 5 * 3840 / 6;
  EXPECT_EQ(ends_ns(result, 5).back(), 2 * period);
}

}  // namespace
}  // namespace gossamer
