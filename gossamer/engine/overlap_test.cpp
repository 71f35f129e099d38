#include "gossamer/engine/overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "gossamer/base/rng.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace {

Clock::time_point second(int s) { return Clock::time_point(std::chrono::seconds(s)); }
Interval from_to(int begin, int end) { return {second(begin), second(end)}; }

TEST(Overlap, CountsWhatOverlapsOnce) {
  EXPECT_DOUBLE_EQ(seconds_in({from_to(0, 4), from_to(2, 6), from_to(8, 9)}, {}), 7);
}

TEST(Overlap, LeavesOutWhatIsInTheOthers) {
  EXPECT_DOUBLE_EQ(seconds_in({from_to(0, 10)}, {from_to(2, 3), from_to(8, 12)}), 7);
  EXPECT_DOUBLE_EQ(seconds_in({from_to(0, 10)}, {from_to(0, 10)}), 0);
}

TEST(Overlap, IntervalsThatEndBeforeTheyBeginAreEmpty) {
  EXPECT_DOUBLE_EQ(seconds_in({from_to(5, 3), from_to(7, 7)}, {}), 0);
  EXPECT_DOUBLE_EQ(seconds_in({}, {from_to(0, 1)}), 0);
}

TEST(Overlap, EqualsCountingSecondBySecond) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const auto draw = [&] {
      std::vector<Interval> intervals(rng.below(6));
      for (Interval& each : intervals) {
        each = from_to(static_cast<int>(rng.below(20)), static_cast<int>(rng.below(20)));
      }
      return intervals;
    };
    const std::vector<Interval> on = draw();
    const std::vector<Interval> off = draw();
    const auto covers = [](const std::vector<Interval>& all, int s) {
      return std::ranges::any_of(
          all, [&](const Interval& i) { return i.begin <= second(s) && second(s + 1) <= i.end; });
    };
    int expected = 0;
    for (int s = 0; s < 20; ++s) expected += covers(on, s) && !covers(off, s);
    EXPECT_DOUBLE_EQ(seconds_in(on, off), expected) << "seed " << seed;
  }
}

TEST(Overlap, AnEngineTellsWhatALinkTookAndWhetherItWaited) {
  constexpr double kJourney_s = 0.1;
  constexpr double kSeen = 0.3;  // a worker that comes late sees the end of a journey only
  constexpr std::int64_t kCount = 10'000;
  const LinkSpec link{.rate_bytes_per_s = kCount * sizeof(float) / kJourney_s};
  ClusterSpec cluster;
  cluster.hosts = {{.workers = 1, .link = link}, {.workers = 1, .link = link}};
  const auto schedule = make_topology("ring", {.shape = {{1, 1}}});
  run_workers(make_threads_transports(cluster, {.emulate_links = true}), [&](Transport& transport) {
    std::vector<float> x(kCount);
    std::vector<float> g(kCount);
    Engine engine({.schedule = schedule, .optimizer = "sgd"}, transport,
                  {{.x = x.data(), .g = g.data(), .count = kCount, .segments = {{0, kCount, 0}}}});
    engine.start_at(0);
    const StepReport waited = engine.step();
    EXPECT_GE(waited.exposed_s + waited.hidden_s, kSeen * kJourney_s);
    std::this_thread::sleep_for(std::chrono::duration<double>(3 * kJourney_s));
    EXPECT_GE(engine.step().hidden_s, kSeen * kJourney_s);
    engine.quiesce();
  });
}

}  // namespace
}  // namespace gossamer
