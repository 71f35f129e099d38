/// Engines of one process may ask one schedule at a time, each from a thread of its own.

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "gossamer/graph/push_sum.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

TEST(SharedSchedule, ManyThreadsSeeTheSameWeightsOfPushSum) {
  const Schedule directed =
      make_topology("random_directed", {.shape = even_hosts(5, 1), .seed = 3, .degree = 1});
  const Schedule schedule = push_sum_rounds(directed);
  const Schedule alone = push_sum_rounds(directed);
  std::vector<std::jthread> threads;
  for (int worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      for (int t = worker; t < 400; t += 3) {
        EXPECT_EQ(schedule.weights(t), alone.weights(t)) << t;
      }
    });
  }
}

}  // namespace
}  // namespace gossamer
