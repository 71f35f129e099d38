#include "gossamer/engine/seating.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gossamer/base/index.h"
#include "gossamer/engine/collectives.h"
#include "gossamer/engine/worker_threads.h"
#include "gossamer/graph/topology.h"
#include "gossamer/transport/threads.h"

namespace gossamer {
namespace {

std::vector<int> receives_from(const Plan& plan) {
  std::vector<int> peers;
  for (const Phase& phase : plan.phases) {
    for (const Message& message : phase.receives) peers.push_back(message.peer);
  }
  return peers;
}

TEST(Seating, ByDefaultEveryPositionIsTheRank) {
  const Seating seating{even_hosts(3, 1), 1};
  EXPECT_EQ(seating.rank(), 1);
  const Round round = round_at(make_topology("ring", {.shape = even_hosts(3, 1)}), 0);
  EXPECT_EQ(compile(round, seating, 10), compile(round, even_hosts(3, 1), 1, 10));
}

TEST(Seating, ThePeersOfAPlanAreRanks) {
  const Round round = round_at(make_topology("directed_ring", {.shape = even_hosts(3, 1)}), 0);
  const std::vector<int> ranks{7, 2, 5};
  for (int position = 0; position < 3; ++position) {
    const Seating seating{even_hosts(3, 1), position, ranks};
    const std::vector<int> by_position =
        receives_from(compile(round, even_hosts(3, 1), position, 10));
    ASSERT_EQ(by_position.size(), 1U);
    EXPECT_EQ(receives_from(compile(round, seating, 10)),
              std::vector<int>{ranks[at(by_position[0])]});
  }
}

TEST(Seating, EveryoneButTheRootHasAParentThatKnowsIt) {
  const std::vector<int> ranks{3, 1, 4, 0, 5, 9, 2};
  for (int position = 1; position < 7; ++position) {
    const Seating own{even_hosts(7, 1), position, ranks};
    const Tree tree = tree_of(own);
    int parents = 0;
    for (int other = 0; other < 7; ++other) {
      const Tree its = tree_of({even_hosts(7, 1), other, ranks});
      if (std::ranges::count(its.children, own.rank()) == 0) continue;
      EXPECT_EQ(tree.parent, ranks[at(other)]);
      ++parents;
    }
    EXPECT_EQ(parents, 1) << position;
  }
  EXPECT_EQ(tree_of({even_hosts(7, 1), 0, ranks}).parent, -1);
}

/// Of five workers all but rank 1 take part, in another order than by rank.
TEST(Seating, CollectivesWorkAmongSomeOfTheWorkersInAnyOrder) {
  const std::vector<int> ranks{3, 0, 4, 2};
  ClusterSpec cluster;
  cluster.hosts.resize(5);
  run_workers(make_threads_transports(cluster), [&](Transport& transport) {
    const int rank = transport.describe().rank;
    const auto found = std::ranges::find(ranks, rank);
    if (found == ranks.end()) return;
    ExchangeRunner runner(transport, 60);
    const int position = static_cast<int>(found - ranks.begin());
    Collectives collectives(runner, {even_hosts(4, 1), position, ranks});
    std::string text = "of rank " + std::to_string(rank);
    EXPECT_EQ(collectives.gather(text),
              (std::vector<std::string>{"of rank 3", "of rank 0", "of rank 4", "of rank 2"}));
    collectives.broadcast(text);
    EXPECT_EQ(text, "of rank 3");
    double value = rank;
    collectives.mean({&value, 1});
    EXPECT_DOUBLE_EQ(value, 9.0 / 4);
  });
}

}  // namespace
}  // namespace gossamer
