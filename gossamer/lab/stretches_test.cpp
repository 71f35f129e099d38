#include "gossamer/lab/stretches.h"

#include <gtest/gtest.h>

#include <map>

#include "gossamer/graph/algebra.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace {

std::size_t stretches_of_topology(const char* name, int workers) {
  const Schedule schedule = make_topology(name, {.shape = even_hosts(workers, 1)});
  return stretches_of(round_at(schedule, 0)).size();
}

TEST(Stretches, AreTheMiddleAndTheEndsOfARing) {
  EXPECT_EQ(stretches_of_topology("ring", 10'000), 3u);
  EXPECT_EQ(stretches_of_topology("ring", 3), 3u);
}

/// Every W of every topology: each weight once, every worker in one stretch, no more terms than
/// there are edges.
TEST(Stretches, SayWhatTheRoundSays) {
  for (const Topology& topology : topologies()) {
    for (int workers : {1, 2, 4, 16}) {
      const Schedule schedule = topology.make({.shape = even_hosts(workers, 1)});
      const Round round = round_at(schedule, 0);
      if (is_partition(round)) continue;
      int next = 0;
      std::size_t terms = 0;
      for (const Stretch& stretch : stretches_of(round)) {
        EXPECT_EQ(stretch.begin, next) << topology.name << " of " << workers;
        terms += stretch.terms.size();
        for (next = stretch.begin; next < stretch.end; ++next) {
          std::map<int, double> row{{next, stretch.self_weight}};
          for (const Stretch::Term& term : stretch.terms) row[next + term.distance] = term.weight;
          for (const Entry& entry : row_of(round, next)) {
            EXPECT_EQ(row[entry.worker], entry.weight) << topology.name << " of " << workers;
          }
        }
      }
      EXPECT_EQ(next, workers);
      EXPECT_LE(terms, static_cast<std::size_t>(nonzeros(round)));
    }
  }
}

}  // namespace
}  // namespace gossamer
