#include "gossamer/plan/ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "gossamer/model/even_buckets.h"

namespace gossamer {
namespace {

ClusterSpec cluster_of(const HostShape& shape, double rate) {
  ClusterSpec cluster;
  for (int workers : shape.workers_per_host) {
    cluster.hosts.push_back({workers, {rate, 20e-6}, {1e10, 1e-6}});
  }
  return cluster;
}

Workload work() { return {.buckets = even_buckets(2'000'000, 4), .compute = {.mean_s = 0.1}}; }

constexpr int kAll = 1'000;

const RankedCandidate& recommended(const Ranking& ranking) {
  return ranking.candidates[ranking.recommended];
}

TEST(Ranking, IsByTimeAndTheBestAreSimulated) {
  const Ranking ranking = rank(cluster_of(even_hosts(4, 2), 1e7), work(), {});
  EXPECT_TRUE(std::ranges::is_sorted(ranking.candidates, {}, &RankedCandidate::total_s));
  for (int k = 0; k < 3; ++k) {
    EXPECT_TRUE(ranking.candidates[static_cast<std::size_t>(k)].is_simulated) << k;
  }
  for (const RankedCandidate& c : ranking.candidates) {
    EXPECT_GE(c.step_s, 0.1 - 1e-9) << name_of(c.candidate);
    EXPECT_NEAR(c.total_s, 10'000 * c.steps.ratio * c.step_s, 1e-6 * c.total_s);
  }
  EXPECT_GE(ranking.reasons.size(), 2u);
  EXPECT_GE(ranking.doubts.size(), 1u);
}

TEST(Ranking, TheBestAreTheSameWhetherAllAreRankedOrNot) {
  for (const double rate : {1e6, 1e8, 1e10}) {
    for (const HostShape& shape : {even_hosts(4, 2), even_hosts(9, 1), HostShape{{1, 2, 4}}}) {
      Workload workload = work();
      workload.compute.jitter = Jitter::normal;
      workload.compute.deviation_s = 0.01;
      const ClusterSpec cluster = cluster_of(shape, rate);
      const Ranking all = rank(cluster, workload, {}, {.wanted = kAll});
      const Ranking best = rank(cluster, workload, {}, {.wanted = 10});
      EXPECT_EQ(all.slower, 0);
      EXPECT_EQ(all.candidates.size(),
                best.candidates.size() + static_cast<std::size_t>(best.slower));
      EXPECT_EQ(recommended(all).candidate, recommended(best).candidate);
      for (std::size_t k = 0; k < 10; ++k) {
        EXPECT_EQ(name_of(all.candidates[k].candidate), name_of(best.candidates[k].candidate))
            << shape.hosts() << " hosts, " << rate << ", " << k;
      }
    }
  }
}

TEST(Ranking, FastLinksAreForAllReduceAndSlowOnesForGossip) {
  for (const HostShape& shape : {even_hosts(4, 2), even_hosts(3, 1), HostShape{{1, 2, 4}}}) {
    const Ranking fast = rank(cluster_of(shape, 1e10), work(), {});
    EXPECT_EQ(name_of(recommended(fast).candidate), "ddp") << shape.hosts();
    const Ranking slow = rank(cluster_of(shape, 1e7), work(), {});
    EXPECT_FALSE(averages_gradients(recommended(slow).candidate)) << shape.hosts();
    EXPECT_LT(recommended(slow).step_s, 0.5) << name_of(recommended(slow).candidate);
  }
}

TEST(Ranking, OneWorkerNeedsNobody) {
  const Ranking ranking = rank(cluster_of(even_hosts(1, 1), 1e7), work(), {});
  EXPECT_EQ(name_of(recommended(ranking).candidate), "ddp");
  EXPECT_NEAR(recommended(ranking).step_s, 0.1, 1e-9);
}

TEST(Ranking, AMeasuredRatioDecides) {
  const ClusterSpec cluster = cluster_of(even_hosts(4, 1), 2e7);
  EXPECT_FALSE(
      averages_gradients(recommended(rank(cluster, work(), {.steps_ratio = 1})).candidate));
  EXPECT_TRUE(
      averages_gradients(recommended(rank(cluster, work(), {.steps_ratio = 50})).candidate));
}

TEST(Ranking, ALastingStragglerIsSkipped) {
  Workload workload = work();
  workload.compute.factors = {1, 1, 1, 4, 1, 1, 1, 1};
  const Ranking ranking = rank(cluster_of(even_hosts(8, 1), 1e9), workload, {});
  EXPECT_EQ(recommended(ranking).candidate.late, Late::skip);
  // Seven who take .1 s and one who takes .4 s.
  EXPECT_NEAR(recommended(ranking).step_s, 8 / (7 / 0.1 + 1 / 0.4), 2e-3);
}

TEST(Ranking, UnequalLinksAreForTheFittedGraph) {
  const auto step_of = [](const Ranking& ranking, std::string_view name) {
    for (const RankedCandidate& c : ranking.candidates) {
      if (name_of(c.candidate) == name) return c.step_s;
    }
    return std::nan("");
  };
  Workload workload{.buckets = even_buckets(2'000'000, 8), .compute = {.mean_s = 0.1}};
  ClusterSpec cluster = cluster_of(even_hosts(4, 2), 1e6);
  const double equal_s = step_of(rank(cluster, workload, {}, {.wanted = kAll}), "aer");
  cluster.hosts[3].link.rate_bytes_per_s /= 4;
  const Ranking unequal = rank(cluster, workload, {}, {.simulated = 20, .wanted = kAll});
  EXPECT_LT(step_of(unequal, "fitted"), 1.15 * equal_s);
  EXPECT_GT(step_of(unequal, "aer"), 2 * equal_s);
  EXPECT_EQ(recommended(unequal).candidate.schedule.topology, "fitted");
}

TEST(Ranking, EqualArgumentsGiveEqualRankings) {
  Workload workload = work();
  workload.compute.jitter = Jitter::lognormal;
  workload.compute.deviation_s = 0.02;
  const ClusterSpec cluster = cluster_of(even_hosts(4, 1), 3e7);
  const Ranking first = rank(cluster, workload, {});
  const Ranking again = rank(cluster, workload, {});
  ASSERT_EQ(first.candidates.size(), again.candidates.size());
  for (std::size_t k = 0; k < first.candidates.size(); ++k) {
    EXPECT_EQ(first.candidates[k].candidate, again.candidates[k].candidate);
    EXPECT_EQ(first.candidates[k].step_s, again.candidates[k].step_s);
  }
  EXPECT_EQ(first.reasons, again.reasons);
}

// Few steps are simulated, whose compute times are drawn.
TEST(Ranking, NoStepIsShorterThanItsComputation) {
  Workload workload = work();
  workload.compute.jitter = Jitter::normal;
  workload.update_s = 1e-3;
  for (const double deviation : {0.005, 0.02}) {
    workload.compute.deviation_s = deviation;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      workload.compute.seed = seed;
      for (const RankedCandidate& c :
           rank(cluster_of(even_hosts(4, 2), 1e8), workload, {}, {.wanted = 30}).candidates) {
        EXPECT_GT(c.step_s, 0.1 + 1e-3 - 1e-6) << name_of(c.candidate) << " " << seed;
      }
    }
  }
}

TEST(Ranking, RanksOnceWhatIsAskedForTwice) {
  const MethodSpec ddp = parse_method("ddp");
  const MethodSpec hook = parse_method("ddp:bf16");
  const Ranking ranking =
      rank(cluster_of(even_hosts(4, 1), 1e8), work(), {}, {.also = {ddp, hook, hook}});
  EXPECT_EQ(std::ranges::count(ranking.candidates, ddp, &RankedCandidate::candidate), 1);
  EXPECT_EQ(std::ranges::count(ranking.candidates, hook, &RankedCandidate::candidate), 1);
}

TEST(Ranking, RefusesWhatMakesNoSense) {
  EXPECT_THROW(rank({}, work(), {}), std::invalid_argument);
  EXPECT_THROW(rank(cluster_of(even_hosts(2, 1), 1e9), {}, {}), std::invalid_argument);
}

TEST(Candidates, AreThoseThatTheHostsAllow) {
  const auto has = [](const HostShape& shape, std::string_view name) {
    return std::ranges::any_of(candidates_for(cluster_of(shape, 1e9)),
                               [&](const MethodSpec& c) { return name_of(c) == name; });
  };
  EXPECT_TRUE(has(even_hosts(8, 1), "hypercube"));
  EXPECT_FALSE(has(even_hosts(6, 1), "hypercube"));
  EXPECT_TRUE(has(even_hosts(6, 1), "aer:int8:local=4"));
  EXPECT_TRUE(has(even_hosts(1, 1), "ddp"));
}

}  // namespace
}  // namespace gossamer
