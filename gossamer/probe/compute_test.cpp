#include "gossamer/probe/compute.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "gossamer/probe/probe_case.h"

namespace gossamer {
namespace {

ClusterSpec two_hosts() { return {.hosts = {{.workers = 2}, {.workers = 1}}}; }

ProbedCompute merged(const std::vector<std::vector<TimedStep>>& by_rank) {
  const auto all = probe_case::on_all<ProbedCompute>(
      two_hosts(), [&](ExchangeRunner&, Collectives& collectives) {
        return merge_steps(collectives, by_rank[static_cast<std::size_t>(collectives.rank())]);
      });
  EXPECT_EQ(all[0].times.mean_s, all[2].times.mean_s);
  return all[0];
}

TEST(MergeSteps, TakesMeansOverAllAndTheDeviationWithinEach) {
  const std::vector<TimedStep> even = {{1, 2, 0.5}, {1, 4, 0.5}, {2, 4, 0.5}, {2, 2, 0.5}};
  const ProbedCompute found = merged({even, even, even});
  EXPECT_EQ(found.times.mean_s, 4.5);
  EXPECT_DOUBLE_EQ(found.forward_share, 6.0 / 18);
  EXPECT_DOUBLE_EQ(found.update_s, 0.5);
  // Distances −1.5, .5, 1.5, −.5 of four steps each of three workers, of which each has its mean.
  EXPECT_DOUBLE_EQ(found.times.deviation_s, std::sqrt(3 * 5.0 / (12 - 3)));
  EXPECT_EQ(found.times.jitter, Jitter::normal);
  EXPECT_EQ(found.speeds, std::vector<double>(3, 1));
}

TEST(MergeSteps, NamesHostsThatAreSlower) {
  const std::vector<TimedStep> fast(5, {1, 2, 0});
  const std::vector<TimedStep> slow(5, {2, 4, 0});
  const ProbedCompute found = merged({fast, fast, slow});
  EXPECT_EQ(found.times.mean_s, 4);
  EXPECT_EQ(found.times.deviation_s, 0);
  EXPECT_EQ(found.times.jitter, Jitter::constant);
  const std::vector<double> speeds = {4.0 / 3, 4.0 / 3, 4.0 / 6};
  EXPECT_EQ(found.speeds, speeds);
  // So that the mean over the workers of what they compute, mean / speed, is the mean.
  EXPECT_DOUBLE_EQ((2 * 4 / speeds[0] + 4 / speeds[2]) / 3, 4);
}

TEST(MergeSteps, TakesDifferencesWithinTheNoiseForNone) {
  const std::vector<TimedStep> one = {{1, 2, 0}, {1, 3, 0}};
  const std::vector<TimedStep> other = {{1, 2.2, 0}, {1, 3.2, 0}};
  EXPECT_EQ(merged({one, one, other}).speeds, std::vector<double>(3, 1));
}

TEST(MergeSteps, RefusesAWorkerWithoutSteps) {
  const std::vector<TimedStep> one = {{1, 2, 0}};
  EXPECT_THROW(merged({one, {}, one}), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
