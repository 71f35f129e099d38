#include "gossamer/plan/candidate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "gossamer/graph/topology.h"
#include "gossamer/sim/simulate.h"

namespace gossamer {
namespace {

TEST(Methods, NamesReadBack) {
  for (std::string_view text :
       {"ddp", "allreduce", "allreduce:bf16", "aer", "aer:int8:local=4:average=48", "ring:backward",
        "base_k:degree=3", "one_peer_ring:skip=2", "complete:bf16:backward",
        "gradient_gossip@aer:int8:rounds=4"}) {
    EXPECT_EQ(name_of(parse_method(text)), text);
  }
  EXPECT_EQ(name_of(parse_method("one_peer_ring:skip")), "one_peer_ring:skip=1");
  EXPECT_EQ(name_of(parse_method("alternating_exponential_ring:fp32:local=1")), "aer");
}

TEST(Methods, WhatMakesNoSenseIsRefused) {
  for (std::string_view text :
       {"", "rign", "aer:", "aer:fp64", "aer:local", "aer:local=0", "aer:local=x", "aer:local=2x",
        "aer:bf16=3", "ddp:int8", "ddp:local=2", "allreduce:average=3", "aer:local=99999999999",
        "aer:gradients=2", "atc", "allreduce@ring", "atc@"}) {
    EXPECT_THROW(parse_method(text), std::invalid_argument) << text;
  }
}

TEST(Methods, EveryTopologyCanBeSimulatedAndModelled) {
  ClusterSpec cluster;
  for (int h = 0; h < 4; ++h) {
    cluster.hosts.push_back({.workers = 2, .link = {.rate_bytes_per_s = 1e6}, .inside = {}});
  }
  const Workload workload{.buckets = {1000, 2000}, .compute = {.mean_s = 1e-2}};
  std::vector<std::string> methods{"ddp", "allreduce"};
  for (const Topology& topology : topologies()) {
    if (topology.stochasticity == Stochasticity::doubly) methods.emplace_back(topology.name);
  }
  for (const char* other : {"cwa_moments@ring", "exact_diffusion@ring:lazy", "atc@ring"}) {
    methods.emplace_back(other);
  }
  for (const std::string& method : methods) {
    double before_s = 0;
    for (const double device_rate : {LinkSpec{}.rate_bytes_per_s, 1e7, 1e6, 2e5}) {
      const double above = std::isinf(device_rate) ? 1.15 : 1.25;
      for (HostSpec& host : cluster.hosts) host.device.rate_bytes_per_s = device_rate;
      const MethodSpec candidate = parse_method(method);
      const SimMethod run = sim_method(candidate, cluster);
      const double simulated = mean_step_s(simulate(cluster, workload, run, {.steps = 40}), 10);
      const MaxPlusOptions options = model_options(candidate);
      const double modelled = step_times(cluster, workload, run.schedule, options).mean_step_s;
      // The model leaves the stages of an exchange out, and has full frames only; and on a device
      // who only sends to a peer copies in what nobody has sent.
      EXPECT_GT(modelled, simulated * 0.5) << method << " " << device_rate;
      EXPECT_LT(modelled, simulated * above) << method << " " << device_rate;
      EXPECT_GE(simulated, 1e-2) << method;
      EXPECT_GE(simulated, before_s * 0.98) << method << " " << device_rate;
      before_s = simulated;
    }
    // 12 kB out and in, one after the other in each step at least every other time.
    EXPECT_EQ(before_s > 0.06, method != "ddp") << method << " " << before_s;
  }
}

TEST(Methods, WordsReachTheSchedule) {
  const ClusterSpec cluster{std::vector<HostSpec>(4)};
  const SimMethod method = sim_method(parse_method("ring:local=2:average=4"), cluster);
  EXPECT_EQ(method.schedule.period, 4);
  EXPECT_TRUE(sim_method(parse_method("ddp"), cluster).pattern->is_ddp);
  EXPECT_EQ(sim_method(parse_method("allreduce:int8"), cluster).codec, Codec::int8);
  EXPECT_EQ(model_options(parse_method("allreduce:int8")).plan.codec, Codec::int8);
  EXPECT_EQ(model_options(parse_method("ddp")).plan.group_method, GroupMethod::ring);
}

}  // namespace
}  // namespace gossamer
