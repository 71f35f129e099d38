#include "gossamer/graph/schedule_spec.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "gossamer/graph/dense.h"
#include "gossamer/graph/round.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

Eigen::MatrixXd matrix(const Schedule& schedule, std::int64_t t) {
  return dense_matrix(round_at(schedule, t));
}

/// W of step t from the definitions: of a ring, so that its round is the same in all steps.
Eigen::MatrixXd expected(const ScheduleSpec& spec, int workers, std::int64_t t) {
  const auto at = [&](int every) { return every > 0 && (t + 1) % every == 0; };
  const Eigen::MatrixXd identity = Eigen::MatrixXd::Identity(workers, workers);
  if (at(spec.global_average)) {
    return Eigen::MatrixXd::Constant(workers, workers, 1.0 / workers);
  }
  if (!at(spec.local_steps)) return identity;
  Eigen::MatrixXd w = matrix(make_topology("ring", {.shape = even_hosts(workers, 1)}), 0);
  if (spec.lazy) w = (identity + w) / 2;
  Eigen::MatrixXd product = identity;
  for (int k = 0; k < spec.rounds_per_step; ++k) product = w * product;
  return product;
}

TEST(ScheduleSpec, ModifiersApplyInTheOrderOfTheFields) {
  constexpr int kWorkers = 6;
  for (const bool lazy : {false, true}) {
    for (const int rounds : {1, 2}) {
      for (const int local : {1, 2, 3}) {
        for (const int average : {0, 1, 2, 4}) {
          const ScheduleSpec spec{.topology = "ring",
                                  .lazy = lazy,
                                  .rounds_per_step = rounds,
                                  .local_steps = local,
                                  .global_average = average};
          const Schedule schedule = make_schedule(spec, even_hosts(kWorkers, 1));
          for (std::int64_t t = 0; t < 13; ++t) {
            const Eigen::MatrixXd off = matrix(schedule, t) - expected(spec, kWorkers, t);
            ASSERT_LT(off.cwiseAbs().maxCoeff(), 1e-15)
                << lazy << rounds << local << average << ", step " << t;
          }
        }
      }
    }
  }
}

TEST(ScheduleSpec, WordsSayWhatDiffersFromTheTopology) {
  EXPECT_EQ(modifiers_of({.topology = "ring", .seed = 3, .degree = 2}), std::vector<std::string>{});
  EXPECT_EQ(modifiers_of({.lazy = true,
                          .rounds_per_step = 2,
                          .local_steps = 3,
                          .global_average = 4,
                          .adaptive_average = 5}),
            (std::vector<std::string>{"lazy", "rounds_per_step=2", "local_steps=3",
                                      "global_average=4", "adaptive_average=5"}));
}

TEST(ScheduleSpec, NumbersOutOfRangeAreRefused) {
  const HostShape shape = even_hosts(4, 1);
  EXPECT_THROW(make_schedule({.topology = "rung"}, shape), std::invalid_argument);
  EXPECT_THROW(make_schedule({.rounds_per_step = 0}, shape), std::invalid_argument);
  EXPECT_THROW(make_schedule({.local_steps = 0}, shape), std::invalid_argument);
  EXPECT_THROW(make_schedule({.global_average = -1}, shape), std::invalid_argument);
  EXPECT_THROW(make_schedule({.adaptive_average = -1}, shape), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
