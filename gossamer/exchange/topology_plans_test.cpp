// The Plans of every topology of the table: what is sent is received, and how much crosses hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "gossamer/exchange/interpreter.h"
#include "gossamer/exchange/plan.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace topology_plans_test {

/// n workers as single-worker hosts, as pairs where that is even, and as unequal hosts.
std::vector<HostShape> shapes_of(int n) {
  std::vector<HostShape> shapes{even_hosts(n, 1)};
  if (n % 2 == 0) shapes.push_back(even_hosts(n / 2, 2));
  if (n > 3) shapes.push_back({{1, 2, n - 3}});
  return shapes;
}

/// Throws where a send has no receive; every worker sends its rank + 1 and gets Σ W_ij (j + 1).
void expect_plans_match(const Schedule& schedule, std::int64_t t) {
  constexpr std::int64_t kCount = 33;
  const Round round = round_at(schedule, t);
  std::vector<Plan> plans;
  std::vector<std::vector<double>> payloads;
  for (int i = 0; i < round.workers; ++i) {
    plans.push_back(compile(round, schedule.shape, i, kCount));
    payloads.emplace_back(kCount, i + 1.0);
  }
  const auto mixed = interpret(plans, payloads);
  for (int i = 0; i < round.workers; ++i) {
    double expected = 0;
    for (const Entry& entry : row_of(round, i)) expected += entry.weight * (entry.worker + 1.0);
    for (double value : mixed[static_cast<std::size_t>(i)]) ASSERT_NEAR(value, expected, 1e-11);
  }
}

TEST(TopologyPlans, SendsMatchReceivesForEverySizeAndShape) {
  for (int n = 1; n <= 64; ++n) {
    for (const HostShape& shape : shapes_of(n)) {
      for (const Topology& topology : topologies()) {
        SCOPED_TRACE(std::string(topology.name) + ", " + std::to_string(n) + " workers on " +
                     std::to_string(shape.hosts()) + " hosts");
        try {
          const Schedule schedule = topology.make({.shape = shape, .seed = 5});
          const int rounds = schedule.period == 0 ? 1 : std::min(schedule.period, n < 17 ? 8 : 3);
          for (int t = 0; t < rounds; ++t) expect_plans_match(schedule, t);
        } catch (const std::invalid_argument&) {
          EXPECT_EQ(topology.name, "hypercube") << "serves every size";
        }
      }
    }
  }
}

/// Elements that a host sends to others in step t when bucket b follows the schedule at t + b.
std::int64_t sent_by_host(const Schedule& schedule, int host, std::int64_t t, int buckets,
                          std::int64_t count) {
  std::int64_t sent = 0;
  const int first = schedule.shape.first_rank(host);
  for (int b = 0; b < buckets; ++b) {
    const Round round = round_at(schedule, t + b);
    for (int i = first; i < first + schedule.shape.workers_per_host[0]; ++i) {
      sent += traffic(compile(round, schedule.shape, i, count), schedule.shape, i).between_hosts;
    }
  }
  return sent;
}

TEST(TopologyPlans, AlternatingRingSendsHalfAPayloadPerHostInEveryStepWhenStaggered) {
  for (int hosts : {2, 4, 8, 16}) {
    for (int per_host : {1, 2, 4}) {
      const Schedule aer = make_topology("aer", {.shape = even_hosts(hosts, per_host)});
      constexpr std::int64_t kCount = 16 * 4 * 3;
      const int buckets = 2 * aer.period;
      for (int host = 0; host < hosts; ++host) {
        for (int t = 0; t < aer.period; ++t) {
          EXPECT_EQ(sent_by_host(aer, host, t, buckets, kCount), buckets * kCount / 2)
              << hosts << " x " << per_host << ", host " << host << ", step " << t;
        }
      }
    }
  }
}

TEST(TopologyPlans, AlternatingRingSendsHalfAPayloadPerHostOnAverageWhenNotStaggered) {
  const Schedule aer = make_topology("aer", {.shape = even_hosts(4, 2)});
  constexpr std::int64_t kCount = 16 * 6;
  for (int host = 0; host < 4; ++host) {
    std::int64_t sent = 0;
    for (int t = 0; t < aer.period; ++t) sent += sent_by_host(aer, host, t, 1, kCount);
    EXPECT_EQ(sent, aer.period * kCount / 2);
  }
}

}  // namespace topology_plans_test
}  // namespace gossamer
