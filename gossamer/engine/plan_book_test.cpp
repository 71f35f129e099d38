#include "gossamer/engine/plan_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/index.h"
#include "gossamer/base/rng.h"
#include "gossamer/graph/topology.h"

namespace gossamer {
namespace plan_book_test {

constexpr double kExact = 1e-12;

/// Of so many workers, with `per_host` on each host but the last.
HostShape hosts_of(int workers, int per_host) {
  HostShape shape;
  for (int left = workers; left > 0; left -= per_host) {
    shape.workers_per_host.push_back(std::min(left, per_host));
  }
  return shape;
}

/// As many of them as `left`, chosen at random, as the first of them sees it.
Seating some(const HostShape& shape, int left, Rng& rng) {
  std::vector<int> ranks;
  for (int rank = 0; rank < shape.workers(); ++rank) ranks.push_back(rank);
  while (std::ssize(ranks) > left) {
    ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(rng.below(ranks.size())));
  }
  Seating seating;
  seating.ranks = ranks;
  int first = 0;
  for (const int there : shape.workers_per_host) {
    const auto count = std::ranges::count_if(
        ranks, [&](int rank) { return rank >= first && rank < first + there; });
    if (count > 0) seating.shape.workers_per_host.push_back(static_cast<int>(count));
    first += there;
  }
  return seating;
}

/// Sums over rows and over columns, and what one worker has by itself gets to all.
void expect_mixing(const Schedule& schedule, bool rows, bool columns, int from) {
  const int workers = schedule.shape.workers();
  std::vector<double> reached(at(workers), 0.);
  reached[at(from)] = 1;
  const std::int64_t most = 2 * workers * std::max<std::int64_t>(schedule.period, 8);
  std::int64_t t = 0;
  for (; t < most && std::ranges::count(reached, 0.) > 0; ++t) {
    const Round round = round_at(schedule, t);
    ASSERT_EQ(round.workers, workers);
    std::vector<double> sums(at(workers), 0.);
    std::vector<double> next(at(workers), 0.);
    for (int i = 0; i < workers; ++i) {
      double sum = 0;
      for (const Entry& entry : row_of(round, i)) {
        ASSERT_GE(entry.weight, 0);
        sum += entry.weight;
        sums[at(entry.worker)] += entry.weight;
        next[at(i)] += entry.weight * reached[at(entry.worker)];
      }
      if (rows) {
        ASSERT_NEAR(sum, 1, kExact) << "row " << i << ", round " << t;
      }
    }
    for (int j = 0; columns && j < workers; ++j) {
      ASSERT_NEAR(sums[at(j)], 1, kExact) << "column " << j << ", round " << t;
    }
    reached = next;
  }
  EXPECT_EQ(std::ranges::count(reached, 0.), 0) << "what worker " << from << " has does not reach";
}

struct Played {
  int schedules = 0;
  int anew = 0;  ///< of them those that have not as many workers as before
};

void play(const EngineOptions& options, const Seating& seating, Rng& rng, Played& played) {
  const bool weighs = find_pattern(options.pattern).weighs;
  const Schedule those = schedule_of_those(options, seating, 0);
  ASSERT_EQ(those.shape.workers(), seating.workers());
  ++played.schedules;
  if (seating.workers() < options.schedule.shape.workers()) ++played.anew;
  const int from = static_cast<int>(rng.below(static_cast<std::uint64_t>(seating.workers())));
  // Push-sum's own rounds divide by the weights, so their rows sum to 1 and their columns do not.
  expect_mixing(those, true, !weighs && those.stochasticity == Stochasticity::doubly, from);
}

TEST(SchedulesOfThose, MixWhoeverIsLeftForAllTopologiesSizesHostsAndPatterns) {
  Rng rng(5);
  Played played;
  for (int workers = 2; workers <= 64; ++workers) {
    for (const int per_host : {1, 2, 4}) {
      const HostShape shape = hosts_of(workers, per_host);
      for (const Topology& topology : topologies()) {
        for (const char* pattern : {"cwa", "gradient_tracking", "exact_diffusion", "push_sum"}) {
          EngineOptions options;
          options.pattern = pattern;
          try {
            options.schedule = make_topology(topology.name, {.shape = shape});
            if (unmet_condition(find_pattern(pattern), "sgd", options.schedule, {}) !=
                Condition::none) {
              continue;
            }
          } catch (const std::invalid_argument&) {  // so many it cannot serve
            continue;
          }
          for (int course = 0; course < 3; ++course) {
            const int left = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(workers)));
            SCOPED_TRACE(std::string(topology.name) + ", " + pattern + ", " + std::to_string(left) +
                         " of " + std::to_string(workers) + " on hosts of " +
                         std::to_string(per_host));
            play(options, some(shape, left, rng), rng, played);
            if (testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
  EXPECT_GT(played.anew, 12000);
}

}  // namespace plan_book_test
}  // namespace gossamer
