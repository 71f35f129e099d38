#include "gossamer/plan/scaling.h"

#include <gtest/gtest.h>

namespace gossamer {
namespace {

ClusterSpec cluster_of(int hosts, int workers, double rate) {
  ClusterSpec cluster;
  for (int h = 0; h < hosts; ++h) cluster.hosts.push_back({workers, {rate, 0}, {1e12, 0}});
  return cluster;
}

// Over free links all hosts have as many times the samples as there are hosts. Over slow ones DDP
// has fewer: a ring of four sends 6/4 of 8 MB.
TEST(Scaling, IsTheNumberOfHostsWhereLinksAreFree) {
  const Workload work{.buckets = {1'000'000, 1'000'000}, .compute = {.mean_s = 0.1}};
  const ClusterSpec fast = cluster_of(4, 1, 1e15);
  const Scaling free = scaling_of(fast, work, rank(fast, work, {}));
  EXPECT_EQ(free.workers, 1);
  EXPECT_NEAR(free.step_s, 0.1, 1e-6);
  EXPECT_NEAR(free.recommended, 4, 0.01);
  EXPECT_NEAR(free.ddp, 4, 0.01);
  const ClusterSpec slow = cluster_of(4, 1, 1e7);
  const Ranking ranking = rank(slow, work, {});
  const Scaling scaling = scaling_of(slow, work, ranking);
  EXPECT_LT(scaling.ddp, 4 * 0.1 / 1.2);
  EXPECT_GT(scaling.recommended, scaling.ddp);
  EXPECT_NE(words_of(scaling, ranking, 4).find("times with ddp."), std::string::npos);
}

TEST(Footprint, IsThatOfTheDocs) {
  const Footprint cwa = footprint_of(parse_method("aer:int8"), "adamw", 4);
  EXPECT_EQ(cwa.device, 4);
  EXPECT_EQ(cwa.pinned, 12);
  EXPECT_EQ(cwa.checkpoint, 12);
  EXPECT_EQ(footprint_of(parse_method("allreduce"), "momentum", 4).pinned, 8);
  EXPECT_EQ(footprint_of(parse_method("allreduce"), "momentum", 4).checkpoint, 8);
  EXPECT_EQ(footprint_of(parse_method("ddp"), "sgd", 4).pinned, 0);
  EXPECT_EQ(footprint_of(parse_method("ddp"), "sgd", 4).checkpoint, 4);
}

}  // namespace
}  // namespace gossamer
