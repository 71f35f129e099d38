// Plans whose payloads between hosts are coded: the mean over the workers stays as it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "gossamer/base/rng.h"
#include "gossamer/exchange/interpreter.h"
#include "gossamer/exchange/plan.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace coded_plans_test {

constexpr std::int64_t kCount = 83;
constexpr double kStep = 0.25;

using Payloads = std::vector<std::vector<double>>;

double to_grid(double x) { return std::round(x / kStep) * kStep; }

Payloads random_payloads(int workers) {
  Rng rng(7);
  Payloads payloads(static_cast<std::size_t>(workers));
  for (auto& payload : payloads) {
    for (std::int64_t k = 0; k < kCount; ++k) payload.push_back(rng.normal());
  }
  return payloads;
}

std::vector<HostShape> shapes_of(int n) {
  std::vector<HostShape> shapes{even_hosts(n, 1)};
  if (n % 2 == 0) shapes.push_back(even_hosts(n / 2, 2));
  if (n > 3) shapes.push_back({{1, 2, n - 3}});
  if (n > 4) shapes.push_back({{3, n - 3}});
  return shapes;
}

Payloads mixed(const Round& round, const HostShape& shape, const Payloads& payloads,
               const PlanOptions& options, const Rounding& rounding) {
  std::vector<Plan> plans;
  for (int i = 0; i < round.workers; ++i)
    plans.push_back(compile(round, shape, i, kCount, options));
  return interpret(plans, payloads, rounding);
}

double mean_at(const Payloads& payloads, std::size_t k) {
  double sum = 0;
  for (const auto& payload : payloads) sum += payload[k];
  return sum / static_cast<double>(payloads.size());
}

/// Calls `check` with the rounds of every topology for many sizes and shapes.
template <class Check>
void for_each_round(const Check& check) {
  for (int n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16}) {
    for (const HostShape& shape : shapes_of(n)) {
      for (const Topology& topology : topologies()) {
        if (topology.name == "hypercube" && (n & (n - 1)) != 0) continue;
        if (topology.stochasticity != Stochasticity::doubly) continue;  // codecs are not for it
        const Schedule schedule = topology.make({.shape = shape, .seed = 5});
        const int rounds = schedule.period == 0 ? 1 : std::min(schedule.period, 6);
        for (int t = 0; t < rounds; ++t) {
          SCOPED_TRACE(std::string(topology.name) + ", " + std::to_string(n) + " workers on " +
                       std::to_string(shape.hosts()) + " hosts, round " + std::to_string(t));
          check(round_at(schedule, t), shape);
        }
      }
    }
  }
}

TEST(CodedPlans, PreserveTheMeanForEveryTopologySizeAndShape) {
  for_each_round([](const Round& round, const HostShape& shape) {
    const Payloads before = random_payloads(round.workers);
    const Payloads after = mixed(round, shape, before, {.codec = Codec::int8}, to_grid);
    for (std::size_t k = 0; k < kCount; ++k) {
      ASSERT_NEAR(mean_at(after, k), mean_at(before, k), 1e-12) << "element " << k;
    }
  });
}

TEST(CodedPlans, AreTheUncodedOnesWhereNothingIsLost) {
  for_each_round([](const Round& round, const HostShape& shape) {
    const Payloads before = random_payloads(round.workers);
    const Payloads plain = mixed(round, shape, before, {}, to_grid);
    const Payloads after = mixed(round, shape, before, {.codec = Codec::int8}, std::identity());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      for (std::size_t k = 0; k < kCount; ++k) ASSERT_NEAR(after[i][k], plain[i][k], 1e-12);
    }
  });
}

TEST(CodedPlans, StayWithinTheStepsOfTheCodecFromTheUncodedOnes) {
  for_each_round([](const Round& round, const HostShape& shape) {
    const Payloads before = random_payloads(round.workers);
    const Payloads plain = mixed(round, shape, before, {}, to_grid);
    const Payloads after = mixed(round, shape, before, {.codec = Codec::int8}, to_grid);
    // Half a step for what is received, and as much for what is sent, of sums over a host each.
    const double bound = kStep * static_cast<double>(round.workers);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      for (std::size_t k = 0; k < kCount; ++k) ASSERT_NEAR(after[i][k], plain[i][k], bound);
    }
  });
}

TEST(CodedPlans, FinishedAveragesAreTheSameOnAllWorkers) {
  for (int n : {2, 3, 4, 6, 7, 8}) {
    for (const HostShape& shape : shapes_of(n)) {
      const PlanOptions options{.finished_averages = true, .codec = Codec::bf16};
      const Payloads before = random_payloads(n);
      const Payloads after = mixed(complete_round(n), shape, before, options, to_grid);
      for (int i = 1; i < n; ++i) EXPECT_EQ(after[static_cast<std::size_t>(i)], after[0]);
    }
  }
}

TEST(CodedPlans, CodeWhatCrossesHostsAndNothingElse) {
  for_each_round([](const Round& round, const HostShape& shape) {
    for (int i = 0; i < round.workers; ++i) {
      const Plan plan = compile(round, shape, i, kCount, {.codec = Codec::bf16});
      for (const Phase& phase : plan.phases) {
        for (const auto* messages : {&phase.sends, &phase.receives}) {
          for (const Message& message : *messages) {
            const bool crosses = shape.host_of(message.peer) != shape.host_of(i);
            ASSERT_EQ(is_coded(plan, message.slice), crosses) << "with worker " << message.peer;
          }
        }
      }
    }
  });
}

TEST(CodedPlans, SendAsManyElementsAsTheUncodedOnes) {
  for_each_round([](const Round& round, const HostShape& shape) {
    for (int i = 0; i < round.workers; ++i) {
      const Traffic plain = traffic(compile(round, shape, i, kCount), shape, i);
      const Traffic coded =
          traffic(compile(round, shape, i, kCount, {.codec = Codec::bf16}), shape, i);
      ASSERT_EQ(coded.between_hosts, plain.between_hosts);
      ASSERT_EQ(coded.inside_host, plain.inside_host);
      ASSERT_EQ(coded.messages, plain.messages);
    }
  });
}

}  // namespace coded_plans_test
}  // namespace gossamer
