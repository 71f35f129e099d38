/// The simulator sends what engines send: the same messages on every edge, in the same order.

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "gossamer/engine/recorded_case.h"
#include "gossamer/graph/topology.h"
#include "gossamer/sim/simulate.h"

namespace gossamer {
namespace {

using namespace engine_case;  // NOLINT: all of it is about this test

constexpr std::int64_t kSteps = 6;

struct Setting {
  std::string topology;
  SimPattern pattern = SimPattern::cwa;
  HostShape shape;
  std::vector<std::int64_t> buckets = {700};
  GroupMethod group_method = GroupMethod::hierarchical;
  Codec codec = Codec::fp32;
};

/// Exchanges of one phase send at their launch, and with updates in the backward buckets are
/// launched in order. Those of several phases go on when something comes, which several buckets do
/// in an order that time decides: there each bucket's messages are compared.
bool has_one_order(const Setting& setting) {
  const bool is_flat = setting.shape.workers_per_host[0] == 1;
  return setting.buckets.size() == 1 || (setting.pattern == SimPattern::cwa && is_flat);
}

/// By sender, receiver and, where their messages have no common order, bucket: step, bucket, phase
/// and bytes.
using Log = std::map<std::tuple<int, int, int>,
                     std::vector<std::tuple<std::int64_t, int, int, std::int64_t>>>;

Log simulated(const Setting& setting) {
  ClusterSpec cluster = free_links(setting.shape);
  for (HostSpec& host : cluster.hosts) host.link = {.rate_bytes_per_s = 1e8, .latency_s = 1e-5};
  const SimMethod method{.schedule = make_topology(setting.topology, {.shape = setting.shape}),
                         .pattern = setting.pattern,
                         .update = gossips(setting.pattern) ? SimUpdate::backward : SimUpdate::step,
                         .group_method = setting.group_method,
                         .codec = setting.codec};
  const Workload workload{
      .buckets = setting.buckets,
      .compute = {.jitter = Jitter::normal, .mean_s = 1e-4, .deviation_s = 2e-5}};
  const SimResult result =
      simulate(cluster, workload, method, {.steps = kSteps, .record_messages = true});
  Log log;
  for (const TimelineMessage& m : result.messages) {
    log[{m.from, m.to, has_one_order(setting) ? -1 : m.bucket}].emplace_back(m.step, m.bucket,
                                                                             m.phase, m.bytes);
  }
  return log;
}

Log measured(const Setting& setting) {
  Case c{.bucket_sizes = setting.buckets, .steps = kSteps};
  c.options.schedule = make_topology(setting.topology, {.shape = setting.shape});
  c.options.pattern = name_of(setting.pattern);
  c.options.update = UpdateAt::backward;
  c.options.group_method = setting.group_method;
  c.options.codec = setting.codec;
  for (std::int64_t count : setting.buckets) {
    c.group_of.insert(c.group_of.end(), static_cast<std::size_t>(count), 0);
  }
  Log log;
  for (const Recorded& worker : recorded_run(c, kSteps)) {
    for (const MessageEnd& end : worker.records.sent) {
      const int bucket = end.tag.stream / static_cast<int>(kMaxVectors);
      if (end.step == kSteps) continue;  // engines send ahead also after the last step
      log[{worker.records.worker, end.peer, has_one_order(setting) ? -1 : bucket}].emplace_back(
          end.step, bucket, end.phase, end.bytes);
    }
  }
  return log;
}

TEST(SimulatorAndEngine, SendTheSameMessagesInTheSameOrder) {
  const std::vector<std::int64_t> three = {700, 40, 300};
  const HostShape flat = even_hosts(4, 1);
  const HostShape pairs = even_hosts(2, 2);
  const std::vector<Setting> settings = {
      {.topology = "ring", .shape = flat, .buckets = three},
      {.topology = "one_peer_exponential", .shape = flat, .buckets = three},
      {.topology = "aer", .shape = flat, .buckets = three},
      {.topology = "aer", .shape = pairs},
      {.topology = "aer", .shape = pairs, .buckets = three},
      {.topology = "aer", .shape = pairs, .buckets = three, .codec = Codec::int8},
      {.topology = "ring", .pattern = SimPattern::gradient_gossip, .shape = flat, .buckets = three},
      {.topology = "aer",
       .pattern = SimPattern::gradient_gossip,
       .shape = pairs,
       .buckets = three,
       .codec = Codec::int8},
      {.topology = "ring", .pattern = SimPattern::allreduce, .shape = pairs},
      {.topology = "ring", .pattern = SimPattern::allreduce, .shape = pairs, .buckets = three},
      {.topology = "ring",
       .pattern = SimPattern::allreduce,
       .shape = flat,
       .buckets = three,
       .group_method = GroupMethod::ring},
  };
  for (const Setting& setting : settings) {
    SCOPED_TRACE(setting.topology + ", " + std::string(name_of(setting.pattern)) + ", " +
                 std::to_string(setting.shape.hosts()) + " hosts, " +
                 std::to_string(setting.buckets.size()) + " buckets");
    const Log expected = measured(setting);
    EXPECT_GE(expected.size(), 4u);
    EXPECT_EQ(simulated(setting), expected);
  }
}

}  // namespace
}  // namespace gossamer
