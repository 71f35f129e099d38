#include "gossamer/sim/event_queue.h"

#include <gtest/gtest.h>

#include <map>

#include "gossamer/base/rng.h"

namespace gossamer::sim {
namespace {

TEST(EventQueue, EqualTimesComeInTheOrderOfThePushes) {
  EventQueue<int> queue;
  for (int k = 0; k < 100; ++k) queue.push(SimTime(7), k);
  for (int k = 0; k < 100; ++k) EXPECT_EQ(queue.pop().event, k);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, IsASortedMultimapWhatever) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    EventQueue<int> queue;
    std::multimap<SimTime, int> oracle;  // keeps the order of insertion of equal keys
    for (int k = 0; k < 5000; ++k) {
      if (oracle.empty() || rng.below(3) > 0) {
        // Few times, which come again, or so many that those of the first are forgotten.
        const SimTime at(static_cast<std::int64_t>(rng.below(seed % 2 == 0 ? 40 : 4000)));
        queue.push(at, k);
        oracle.emplace(at, k);
        continue;
      }
      ASSERT_EQ(queue.next_time(), oracle.begin()->first) << "seed " << seed;
      const auto entry = queue.pop();
      ASSERT_EQ(entry.at, oracle.begin()->first) << "seed " << seed;
      ASSERT_EQ(entry.event, oracle.begin()->second) << "seed " << seed;
      oracle.erase(oracle.begin());
    }
  }
}

}  // namespace
}  // namespace gossamer::sim
