/// The simulator sends what engines send: the same messages on every edge, in the same order.

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "gossamer/engine/testing/recorded_case.h"
#include "gossamer/graph/modifiers.h"
#include "gossamer/graph/topology.h"
#include "gossamer/sim/simulate.h"

namespace gossamer {
namespace {

using namespace engine_case;  // NOLINT: all of it is about this test

constexpr std::int64_t kSteps = 6;

struct Setting {
  std::string topology;
  std::string pattern = "cwa";
  HostShape shape;
  std::vector<std::int64_t> buckets = {700};
  GroupMethod group_method = GroupMethod::hierarchical;
  Codec codec = Codec::fp32;
};

/// Exchanges of one phase send at their launch, and with updates in the backward buckets are
/// launched in order. Those of several phases go on when something comes, which several buckets and
/// payloads do in an order that time decides: there the messages of each step, bucket and phase are
/// compared.
bool has_one_order(const Setting& setting) {
  const bool is_flat = setting.shape.workers_per_host[0] == 1;
  const PatternFacts& pattern = find_pattern_facts(setting.pattern);
  const bool has_groups = setting.topology == "complete" || pattern.rounds == Rounds::complete;
  if (setting.buckets.size() == 1 && pattern.payloads.size() == 1) return true;
  return pattern.stages() == 1 && is_flat && !has_groups;
}

Schedule schedule_of(const Setting& setting) {
  Schedule schedule = make_topology(setting.topology, {.shape = setting.shape});
  return find_pattern_facts(setting.pattern).is_static ? lazy(std::move(schedule)) : schedule;
}

/// By sender, receiver and, where their messages have no common order, bucket: step, bucket, phase
/// and bytes.
using Log = std::map<std::tuple<int, int, int>,
                     std::vector<std::tuple<std::int64_t, int, int, std::int64_t>>>;

Log simulated(const Setting& setting) {
  ClusterSpec cluster = free_links(setting.shape);
  for (HostSpec& host : cluster.hosts) host.link = {.rate_bytes_per_s = 1e8, .latency_s = 1e-5};
  const SimMethod method{.schedule = schedule_of(setting),
                         .pattern = &find_pattern_facts(setting.pattern),
                         .update = UpdateAt::backward,
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

/// An optimizer and numbers that the pattern goes with.
void suit(EngineOptions& options) {
  const PatternFacts& pattern = find_pattern_facts(options.pattern);
  options.optimizer = pattern.optimizers.empty() ? "sgd" : std::string(pattern.optimizers.front());
  for (Hyper& hyper : options.groups) hyper.outer_every = 2;
}

Log measured(const Setting& setting) {
  Case c{.bucket_sizes = setting.buckets, .steps = kSteps};
  c.options.schedule = schedule_of(setting);
  c.options.pattern = setting.pattern;
  suit(c.options);
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

/// In an order that does not depend on time where there is none.
Log in_order(Log log, const Setting& setting) {
  if (has_one_order(setting)) return log;
  for (auto& [edge, messages] : log) std::ranges::sort(messages);
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
      {.topology = "ring", .pattern = "gradient_gossip", .shape = flat, .buckets = three},
      {.topology = "aer",
       .pattern = "gradient_gossip",
       .shape = pairs,
       .buckets = three,
       .codec = Codec::int8},
      {.topology = "ring", .pattern = "allreduce", .shape = pairs},
      {.topology = "ring", .pattern = "allreduce", .shape = pairs, .buckets = three},
      {.topology = "ring",
       .pattern = "allreduce",
       .shape = flat,
       .buckets = three,
       .group_method = GroupMethod::ring},
  };
  std::vector<Setting> all = settings;
  for (const PatternFacts& pattern : pattern_facts()) {
    // One static, symmetric topology whose rounds average over all, which every row goes with.
    all.push_back({.topology = "complete", .pattern = std::string(pattern.name), .shape = pairs});
    const bool needs_all = pattern.outer == Outer::global_average;
    all.push_back({.topology = needs_all ? "complete" : "ring",
                   .pattern = std::string(pattern.name),
                   .shape = flat,
                   .buckets = three});
  }
  for (const Setting& setting : all) {
    SCOPED_TRACE(setting.topology + ", " + setting.pattern + ", " +
                 std::to_string(setting.shape.hosts()) + " hosts, " +
                 std::to_string(setting.buckets.size()) + " buckets");
    const Log expected = in_order(measured(setting), setting);
    EXPECT_GE(expected.size(), 4u);
    EXPECT_TRUE(in_order(simulated(setting), setting) == expected);
  }
}

}  // namespace
}  // namespace gossamer
