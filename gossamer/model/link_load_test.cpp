#include "gossamer/model/link_load.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

/// What all workers' plans for the real round send and receive, message by message.
std::vector<HostLoad> counted_one_by_one(const Round& round, const HostShape& shape,
                                         const ExchangedPayload& payload) {
  std::vector<HostLoad> loads(shape.workers_per_host.size());
  for (int worker = 0; worker < shape.workers(); ++worker) {
    const int host = shape.host_of(worker);
    const Plan plan = compile(round, shape, worker, payload.elements, payload.plan);
    HostLoad& load = loads[static_cast<std::size_t>(host)];
    load.host = host;
    for (const Phase& phase : plan.phases) {
      for (const Message& send : phase.sends) {
        const bool inside = shape.host_of(send.peer) == host;
        (inside ? load.inside_bytes : load.sent_bytes) +=
            static_cast<std::int64_t>(bytes_of(plan, send.slice, payload.dtype));
      }
      for (const Message& receive : phase.receives) {
        if (shape.host_of(receive.peer) == host) continue;
        load.received_bytes +=
            static_cast<std::int64_t>(bytes_of(plan, receive.slice, payload.dtype));
      }
    }
  }
  return loads;
}

TEST(HostLoads, AreThoseOfEveryWorkersPlan) {
  std::vector<ExchangedPayload> payloads = {{.elements = 1000}, {.elements = 997}};
  payloads.push_back({.elements = 1000, .dtype = DType::f64});
  payloads.push_back({.elements = 1000, .plan = {.finished_averages = true}});
  for (GroupMethod method : {GroupMethod::ring, GroupMethod::direct}) {
    payloads.push_back({.elements = 1000, .plan = {.group_method = method}});
  }
  for (Codec codec : kLossyCodecs) {
    payloads.push_back({.elements = 1000, .plan = {.codec = codec}});
    payloads.push_back({.elements = 1000, .plan = {.separate_neighbours = true, .codec = codec}});
  }
  const std::vector<HostShape> shapes = {even_hosts(1, 4), even_hosts(4, 1), even_hosts(4, 2),
                                         even_hosts(2, 8), HostShape{{3, 1, 2, 2}}};
  int rounds = 0;
  for (const Topology& topology : topologies()) {
    for (const HostShape& shape : shapes) {
      Schedule schedule;
      try {
        schedule = topology.make({.shape = shape});
      } catch (const std::invalid_argument&) {
        continue;  // a size that this topology does not serve
      }
      for (std::int64_t t = 0; t < std::max(1, schedule.period); ++t) {
        const Round round = round_at(schedule, t);
        for (std::size_t k = 0; k < payloads.size(); ++k) {
          ASSERT_EQ(host_loads(round, shape, payloads[k]),
                    counted_one_by_one(round, shape, payloads[k]))
              << topology.name << " on " << shape.workers() << ", round " << t << ", payload " << k;
        }
        ++rounds;
      }
    }
  }
  EXPECT_GT(rounds, 100);
}

TEST(HostLoads, OfTheKnownCases) {
  constexpr std::int64_t kElements = 1 << 16;
  constexpr std::int64_t kBytes = 4 * kElements;
  const ExchangedPayload payload{.elements = kElements};
  // A hierarchical average over two hosts: one payload per host, whatever the number of workers.
  const HostLoad pair = host_loads(complete_round(8), even_hosts(2, 4), payload)[0];
  EXPECT_EQ(pair.sent_bytes, kBytes);
  EXPECT_EQ(pair.received_bytes, kBytes);
  // A flat ring over R = 16 ranks on 4 hosts: 2(R − 1)/R payloads per host.
  const ExchangedPayload flat{.elements = kElements, .plan = {.group_method = GroupMethod::ring}};
  EXPECT_EQ(host_loads(complete_round(16), even_hosts(4, 4), flat)[2].sent_bytes, kBytes * 30 / 16);
  // One-peer exponential, four workers on each host, two hosts: two of four cross at distance 2.
  const Schedule one_peer = make_topology("one_peer_exponential", {.shape = even_hosts(2, 4)});
  EXPECT_EQ(host_loads(round_at(one_peer, 1), even_hosts(2, 4), payload)[0].sent_bytes, 2 * kBytes);
}

TEST(HostLoads, OfHugeGroupsAreWithinTheRoundingOfShards) {
  const HostShape shape = even_hosts(36, 8);
  const ExchangedPayload payload{.elements = 1 << 20};
  const Round everybody = complete_round(shape.workers());
  const std::vector<HostLoad> exact = counted_one_by_one(everybody, shape, payload);
  const std::vector<HostLoad> loads = host_loads(everybody, shape, payload);
  for (std::size_t h = 0; h < loads.size(); ++h) {
    const auto exactly = static_cast<double>(exact[h].sent_bytes);
    // Shards between hosts have 2^20/8/36 = 3641 elements, of which 16 are .44 %.
    EXPECT_NEAR(static_cast<double>(loads[h].sent_bytes), exactly, 0.0044 * exactly) << h;
  }
}

TEST(ExchangeLoads, MembersAreThoseThatWait) {
  const Round ring = round_at(make_topology("ring", {.shape = even_hosts(5, 1)}), 0);
  const std::vector<ExchangeLoad> edges = exchange_loads(ring, even_hosts(5, 1), {.elements = 16});
  EXPECT_EQ(edges.size(), 10U);
  for (const ExchangeLoad& edge : edges) EXPECT_EQ(edge.members.size(), 2U);
  EXPECT_TRUE(exchange_loads(identity_round(5), even_hosts(5, 1), {.elements = 16}).empty());
  const Round groups = partition_round(5, {{0, 3, 4}, {1}, {2}});
  const std::vector<ExchangeLoad> loads =
      exchange_loads(groups, even_hosts(5, 1), {.elements = 16});
  ASSERT_EQ(loads.size(), 1U);
  EXPECT_EQ(loads[0].members, (std::vector<int>{0, 3, 4}));
  EXPECT_EQ(loads[0].hosts[1].host, 3);
  EXPECT_THROW(exchange_loads(ring, even_hosts(2, 2), {}), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
