#include "gossamer/model/host_work.h"

#include <gtest/gtest.h>

#include <cmath>

#include "gossamer/base/rng.h"
#include "gossamer/graph/topology.h"
#include "gossamer/model/max_plus.h"

namespace gossamer {
namespace {

HostWork work_of(const HostShape& shape, std::int64_t count, const PlanOptions& options) {
  const Round round = complete_round(shape.workers());
  return host_work(compile(round, shape, 0, count, options), shape.hosts_by_rank(), 0,
                   {.finished_averages = options.finished_averages});
}

// The rate counts the bytes of parameters that two hosts average in fp32.
TEST(HostWork, OfAnAverageOfTwoHostsIsItsBytes) {
  const HostWork work = work_of(even_hosts(2, 1), 1000, {.finished_averages = true});
  EXPECT_NEAR(work.before, 0.37 * 4000, 1e-9);
  EXPECT_NEAR(work.before + work.after, 4000, 0.005 * 4000);
}

// One is coded and one decoded; the worker adds its own in fp32. int8 costs more than it saves.
TEST(HostWork, OfCodecs) {
  const auto total = [](Codec codec) {
    const HostWork work =
        work_of(even_hosts(2, 1), 2560, {.finished_averages = true, .codec = codec});
    return (work.before + work.after) / 2560;
  };
  const double wire = 0.37 * 2 * 260 / 256;
  EXPECT_NEAR(total(Codec::int8), wire + 2 + 1 + 0.087 * (4 + 4), 1e-9);
  EXPECT_NEAR(total(Codec::bf16), 0.37 * 4 + 0.087 * (6 + 2 + 4 + 4), 1e-9);
}

TEST(HostWork, InsideAHostOnlySumsCount) {
  const HostWork work = work_of(even_hosts(1, 2), 1000, {.finished_averages = true});
  EXPECT_EQ(work.before, 0);
  EXPECT_NEAR(work.after, 0.087 * 3 * 4 * 500, 10);  // of its half, which is rounded
}

// x and the mean are read, and the correction is written.
TEST(HostWork, CorrectionsOfParametersAreAPassMore) {
  const HostWork finished = work_of(even_hosts(1, 4), 1000, {.finished_averages = true});
  const HostWork mixed = work_of(even_hosts(1, 4), 1000, {});
  EXPECT_NEAR(mixed.after - finished.after, 0.087 * 3 * 4000, 1e-9);
}

TEST(BusyThread, FillsWhatIsLeft) {
  BusyThread thread;
  EXPECT_EQ(thread.take(1, 2), 3);
  EXPECT_EQ(thread.take(5, 1), 6);
  EXPECT_EQ(thread.take(0, 1), 1);  // before both
  EXPECT_EQ(thread.take(2, 3), 7);  // from 3 to 5, then from 6
  EXPECT_EQ(thread.take(0, 1), 8);  // behind all of it
  EXPECT_EQ(thread.take(9, 0), 9);
  thread.forget_before(8.5);
  EXPECT_EQ(thread.take(9, 1), 10);
}

// However things are asked for, no time is idle while something waits.
TEST(BusyThread, WorksWithoutPauses) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed, 0);
    BusyThread thread;
    double last = 0;
    double sum = 0;
    for (int k = 0; k < 20; ++k) {
      const double seconds = 0.1 + rng.uniform();
      sum += seconds;
      last = std::max(last, thread.take(2 * rng.uniform(), seconds));
    }
    EXPECT_LE(last, 2 + sum + 1e-9) << seed;
    EXPECT_GE(last, sum - 1e-9) << seed;
  }
}

// One bucket: its gradient is there after the computation, then the thread works, the link sends,
// and the thread works again.
TEST(HostWork, IsInTheStepOfAnAllReduce) {
  ClusterSpec cluster;
  for (int h = 0; h < 2; ++h) {
    cluster.hosts.push_back({.workers = 1, .link = {1e8, 0}, .inside = {}});
    cluster.hosts.back().host_rate_bytes_per_s = 1e8;
  }
  const Workload work{.buckets = {1'000'000}, .compute = {.mean_s = 0.1}};
  MaxPlusOptions options{.launch_at = LaunchAt::backward,
                         .result_needed = ResultNeeded::same_step,
                         .updates_last = true,
                         .stagger = false,
                         .plan = {.finished_averages = true},
                         .steps = 4,
                         .warm_up = 1};
  const Schedule schedule = complete_schedule(even_hosts(2, 1));
  const double step_s = step_times(cluster, work, schedule, options).mean_step_s;
  EXPECT_NEAR(step_s, 0.1 + 0.04 + 0.04, 0.0005);
  options.host_works = false;
  EXPECT_NEAR(step_times(cluster, work, schedule, options).mean_step_s, 0.1 + 0.04, 1e-9);
}

}  // namespace
}  // namespace gossamer
