#include "gossamer/sim/network.h"

#include <gtest/gtest.h>

#include <map>

namespace gossamer::sim {
namespace {

// 1 byte per ns between hosts, 8 inside.
ClusterSpec three_hosts() {
  ClusterSpec cluster;
  for (int h = 0; h < 3; ++h) {
    cluster.hosts.push_back({.workers = 2, .link = {1e9, 5e-9}, .inside = {8e9, 1e-9}});
  }
  return cluster;
}

constexpr Framing kNoOverhead{.payload_bytes = 1, .frame_bytes = 1};

/// Runs a network until nothing moves; answers when each parcel, by its step, has arrived.
struct Case {
  ClusterSpec cluster = three_hosts();
  Events events;
  Network network{cluster, kNoOverhead, events};
  std::map<std::int64_t, std::int64_t> arrived_ns;

  TransferId send(std::int64_t name, int from, int to, std::int64_t bytes, SimTime now = {}) {
    const Parcel parcel{
        .from = from, .to = to, .edge = network.edge(from, to), .exchange = name, .bytes = bytes};
    const TransferId id = network.make(now, parcel);
    network.depart(now, id);
    return id;
  }
  /// Until nothing is left to do, or a moment before `until`.
  void run(SimTime until = SimTime::max()) {
    SimTime now{0};
    for (;;) {
      if (network.is_unsettled() && (events.empty() || events.next_time() > now)) {
        network.settle(now);
        continue;
      }
      if (events.empty() || events.next_time() >= until) return;
      const auto entry = events.pop();
      now = entry.at;
      const Event& event = entry.event;
      if (event.kind == Event::Kind::left) network.has_left(now, event.who, event.detail);
      if (event.kind == Event::Kind::arrived) {
        arrived_ns[network.at(event.who).parcel.exchange] = now.count();
        network.remove(event.who);
      }
    }
  }
};

using Times = std::map<std::int64_t, std::int64_t>;

TEST(Network, OneTransferTakesItsBytesAndTheLatency) {
  Case c;
  c.send(1, 0, 2, 1000);
  c.send(2, 0, 1, 1000);
  c.run();
  EXPECT_EQ(c.arrived_ns, (Times{{1, 1005}, {2, 126}}));
}

TEST(Network, TwoSendersOfAHostShareItsEgress) {
  Case c;
  c.send(1, 0, 2, 1000);
  c.send(2, 1, 4, 400);
  c.run();
  // Half a byte per ns each until 800; then 600 bytes are left of the first.
  EXPECT_EQ(c.arrived_ns, (Times{{2, 805}, {1, 1405}}));
}

TEST(Network, WhatOneCannotUseTheOtherGets) {
  Case c;
  c.network.set_factor(1, 0.25);
  c.send(1, 0, 2, 1000);  // limited by host 1 to 1/4
  c.send(2, 1, 4, 1500);  // so this has 3/4
  c.run();
  EXPECT_EQ(c.arrived_ns, (Times{{1, 4005}, {2, 2005}}));
}

TEST(Network, DirectionsDoNotDisturbEachOther) {
  Case c;
  c.send(1, 0, 2, 1000);
  c.send(2, 2, 0, 1000);
  c.run();
  EXPECT_EQ(c.arrived_ns, (Times{{1, 1005}, {2, 1005}}));
}

TEST(Network, ToTheSamePeerOneAfterTheOther) {
  Case c;
  c.send(1, 0, 2, 1000);
  c.send(2, 0, 2, 100);
  c.send(3, 0, 1, 80);
  c.send(4, 0, 1, 80);
  c.run();
  EXPECT_EQ(c.arrived_ns, (Times{{1, 1005}, {2, 1105}, {3, 11}, {4, 21}}));
}

TEST(Network, AChangeReachesLinksItIsConnectedTo) {
  // 0→2 and 1→4 share host 0's egress, 1→4 and 3→5 host 2's ingress. Once 0→2 has ended, 1→4 could
  // have the whole egress, but shares the ingress.
  Case c;
  c.send(1, 0, 2, 100);
  c.send(2, 1, 4, 300);
  c.send(3, 3, 5, 1000);
  c.run();
  EXPECT_EQ(c.arrived_ns, (Times{{1, 205}, {2, 605}, {3, 1305}}));
}

TEST(Network, ALinkThatIsDownHoldsItsTransfers) {
  Case c;
  c.send(1, 0, 2, 100);
  c.run(SimTime(50));
  c.network.set_factor(0, 0);
  c.network.settle(SimTime(40));
  c.run();
  EXPECT_EQ(c.arrived_ns, Times{});
  c.network.set_factor(0, 1);
  c.network.settle(SimTime(1000));
  c.run();
  EXPECT_EQ(c.arrived_ns, (Times{{1, 1065}}));  // 60 bytes were left
}

TEST(Network, ALostWorkerLeavesTheLinkToTheOthers) {
  Case c;
  c.send(1, 0, 2, 100);
  c.send(2, 1, 2, 100);
  c.run(SimTime(100));
  c.network.lose(0);
  c.network.settle(SimTime(100));
  c.run();
  EXPECT_EQ(c.arrived_ns, (Times{{2, 155}}));
}

TEST(Network, FramesCount) {
  EXPECT_EQ(bytes_on_wire({}, 1448), 1514);
  EXPECT_EQ(bytes_on_wire({}, 1449), 1449 + 2 * 66);
  EXPECT_EQ(bytes_on_wire({}, 0), 0);
  EXPECT_EQ(bytes_on_wire({.message_bytes = 48}, 1400), 1514);
  EXPECT_EQ(bytes_on_wire(kNoOverhead, 12345), 12345);
}

TEST(Network, TrafficIsCountedByLinkAndDirection) {
  Case c;
  c.send(1, 0, 2, 100);
  c.send(2, 3, 4, 10);
  c.send(3, 1, 0, 7);
  c.run();
  const auto& traffic = c.network.traffic();
  EXPECT_EQ(traffic[0].sent_bytes, 100);
  EXPECT_EQ(traffic[0].inside_bytes, 7);
  EXPECT_EQ(traffic[1].received_bytes, 100);
  EXPECT_EQ(traffic[1].sent_wire_bytes, 10);
  EXPECT_EQ(traffic[2].received_wire_bytes, 10);
}

}  // namespace
}  // namespace gossamer::sim
