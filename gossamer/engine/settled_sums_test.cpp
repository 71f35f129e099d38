// Patterns that keep a sum over all workers, over those that are left: see Note [Sums that begin
// anew].
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"
#include "gossamer/engine/engine.h"
#include "gossamer/engine/testing/bowls.h"
#include "gossamer/engine/testing/engine_case.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/schedule_spec.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace settled_sums_test {

constexpr int kElements = 12;
constexpr double kRate = 0.2;
/// Of the two buckets.
constexpr std::int64_t kFirst = 7;

struct Death {
  int worker = 0;
  int step = 0;      ///< that it does not end
  int buckets = -1;  ///< of which it says before that their gradient is ready
};

struct Case {
  std::string pattern = "gradient_tracking";
  ScheduleSpec schedule = {.topology = "ring"};
  std::vector<int> per_host = {1, 1, 1, 1, 1, 1, 1, 1};
  UpdateAt update = UpdateAt::step;
  bool stagger = true;
  double rate = kRate;
  int steps = 700;
  std::vector<Death> deaths = {};
  Schedule own = {};  ///< in place of `schedule`, where it has rounds
};

const Death* death_of(const Case& given, int rank) {
  const auto found = std::ranges::find(given.deaths, rank, &Death::worker);
  return found == given.deaths.end() ? nullptr : &*found;
}

std::vector<int> left(const Case& given) {
  std::vector<int> ranks;
  for (int rank = 0; rank < HostShape{given.per_host}.workers(); ++rank) {
    if (death_of(given, rank) == nullptr) ranks.push_back(rank);
  }
  return ranks;
}

struct Found {
  std::vector<std::vector<std::vector<double>>> x;  ///< by rank, after each step
  std::vector<int> lost;  ///< of those that end early, so many each has said to be lost
};

Found found(const Case& given) {
  const HostShape shape{given.per_host};
  Found all;
  all.x.resize(at(shape.workers()));
  all.lost.resize(at(shape.workers()));
  run_workers(make_threads_transports(engine_case::free_links(shape)), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    const Death* const death = death_of(given, rank);
    std::vector<double> x(kElements);
    std::vector<double> g(kElements);
    for (int i = 0; i < kElements; ++i) x[at(i)] = std::cos(3. * rank + i);
    Engine engine({.schedule = given.own.round ? given.own : make_schedule(given.schedule, shape),
                   .pattern = given.pattern,
                   .optimizer = "sgd",
                   .groups = {{.lr = given.rate}},
                   .update = given.update,
                   .stagger = given.stagger,
                   .lost = Lost::go_on},
                  transport,
                  {{DType::f64, x.data(), g.data(), kFirst, {{0, kFirst, 0}}},
                   {DType::f64,
                    x.data() + kFirst,
                    g.data() + kFirst,
                    kElements - kFirst,
                    {{0, kElements - kFirst, 0}}}});
    engine.set_anchors();
    engine.start_at(0);
    for (int step = 0; step < given.steps; ++step) {
      bowls::set_gradient(rank, x, g);
      const bool ends = death != nullptr && death->step == step;
      const int ready = ends ? death->buckets : 2;
      if (ready > 0) engine.gradient_ready(1);
      if (ready > 1) engine.gradient_ready(0);
      if (ends) return;
      for (const LostPeer& lost : engine.step().lost) {
        if (death_of(given, lost.peer) != nullptr) ++all.lost[at(rank)];  // others end as well
      }
      all.x[at(rank)].push_back(x);
    }
  });
  return all;
}

void expect_optimum(const Case& given) {
  SCOPED_TRACE(given.pattern + " on " + given.schedule.topology);
  const Found all = found(given);
  const std::vector<int> ranks = left(given);
  for (const int rank : ranks) {
    for (int i = 0; i < kElements; ++i) {
      ASSERT_NEAR(all.x[at(rank)].back()[at(i)], bowls::optimum(ranks, i), 1e-10)
          << "worker " << rank;
    }
  }
}

const std::vector<Death> kFive = {{2, 20, 1}, {7, 40}, {1, 60, 0}, {4, 61, 2}, {0, 90}};

TEST(SettledSums, FiveDeathsOnARing) {
  for (const char* pattern :
       {"exact_diffusion", "extra", "gradient_tracking", "gradient_tracking_atc"}) {
    const bool is_lazy = std::string(pattern) == "exact_diffusion";
    expect_optimum(
        {.pattern = pattern, .schedule = {.topology = "ring", .lazy = is_lazy}, .deaths = kFive});
  }
}

TEST(SettledSums, WithUpdatesInTheBackward) {
  for (const char* pattern : {"extra", "gradient_tracking"}) {
    expect_optimum({.pattern = pattern, .update = UpdateAt::backward, .deaths = kFive});
  }
}

TEST(SettledSums, OnDirectedAndChangingRounds) {
  for (const char* topology :
       {"directed_ring", "exponential", "one_peer_exponential", "alternating_exponential_ring"}) {
    expect_optimum({.schedule = {.topology = topology},
                    .per_host = {2, 2, 2, 2},
                    .rate = 0.1,
                    .steps = 1200,
                    .deaths = kFive});
  }
}

TEST(SettledSums, WhereTheTopologyServesNoneOfTheOtherSizes) {
  expect_optimum({.schedule = {.topology = "hypercube"}, .deaths = kFive});
}

TEST(SettledSums, UntilOneIsLeft) {
  expect_optimum(
      {.pattern = "extra", .per_host = {1, 1, 1}, .steps = 400, .deaths = {{1, 30, 1}, {2, 60}}});
}

TEST(SettledSums, RoundsOfOnesOwnGoOnAmongThoseThatAreLeft) {
  const Schedule ring = make_topology("ring", {.shape = even_hosts(8, 1)});
  expect_optimum({.steps = 2500,
                  .deaths = {{3, 25, 1}},
                  .own = periodic_schedule("mine", ring.shape, {round_at(ring, 0)})});
}

TEST(SettledSums, RandomCourses) {
  Rng rng = Rng(17);
  for (int course = 0; course < 8; ++course) {
    Case given{.pattern = course % 2 == 0 ? "extra" : "gradient_tracking_atc",
               .per_host = {2, 1, 3}};
    std::vector<int> ranks = {0, 1, 2, 3, 4, 5};
    for (int deaths = 1 + course % 4; deaths > 0; --deaths) {
      const auto which = static_cast<std::ptrdiff_t>(rng.below(ranks.size()));
      given.deaths.push_back({.worker = ranks[at(which)],
                              .step = static_cast<int>(rng.below(80)),
                              .buckets = static_cast<int>(rng.below(3))});
      ranks.erase(ranks.begin() + which);
    }
    expect_optimum(given);
  }
}

/// Where nothing is learnt, who is left comes to the mean of what they had when they knew. All
/// weigh alike then, but in staggered buckets, which are some rounds further.
TEST(SettledSums, PushSumKeepsTheMeanOfThoseThatAreLeft) {
  for (const char* topology : {"exponential", "random_directed"}) {
    const Case given{.pattern = "push_sum",
                     .schedule = {.topology = topology, .degree = 2},
                     .stagger = false,
                     .rate = 0,
                     .steps = 200,
                     .deaths = {{5, 10}}};
    const Found all = found(given);
    const std::vector<int> ranks = left(given);
    for (int i = 0; i < kElements; ++i) {
      double mean = 0;
      for (const int rank : ranks) mean += all.x[at(rank)][10][at(i)] / 7;
      for (const int rank : ranks) ASSERT_NEAR(all.x[at(rank)].back()[at(i)], mean, 1e-12);
    }
  }
}

TEST(SettledSums, EverybodySaysOnceWhoIsLost) {
  const Found all = found({.steps = 60, .deaths = {{3, 20, 1}}});
  for (const int rank : {0, 1, 2, 4, 5, 6, 7}) EXPECT_EQ(all.lost[at(rank)], 1) << rank;
}

}  // namespace settled_sums_test
}  // namespace gossamer
