// Who goes on where the network parts the workers.
#include "gossamer/transport/cut_off.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "gossamer/base/rng.h"

namespace gossamer {
namespace cut_off_test {

TEST(CutOff, MoreThanTheyMissGoOn) {
  EXPECT_TRUE(may_go_on({.there = {2}, .unheard = {}}, 0));
  EXPECT_TRUE(may_go_on({.there = {1, 2}, .unheard = {0}}, 0));
  EXPECT_FALSE(may_go_on({.there = {0}, .unheard = {1, 2}}, 0));
  EXPECT_TRUE(may_go_on({.there = {0, 3}, .unheard = {1, 2}}, 0));
  EXPECT_FALSE(may_go_on({.there = {1, 2}, .unheard = {0, 3}}, 0));
}

TEST(CutOff, OrSoManyAsTheProgramSays) {
  EXPECT_TRUE(may_go_on({.there = {3}, .unheard = {0, 1, 2}}, 1));
  EXPECT_FALSE(may_go_on({.there = {2, 3}, .unheard = {0, 1}}, 3));
  EXPECT_TRUE(may_go_on({.there = {3}, .unheard = {}}, 3));  // the others have ended
}

/// Workers 0 and 1, and 2 has come back: 1 has agreed on that, and 0 may not know.
TEST(CutOff, WithANewcomerAndWithoutIt) {
  EXPECT_FALSE(may_go_on({.there = {1}, .unheard = {0}, .new_there = {2}}, 0));
  EXPECT_TRUE(may_go_on({.there = {1, 2}, .unheard = {0}}, 0));  // all have
  EXPECT_TRUE(may_go_on({.there = {0, 1}, .unheard = {}, .new_unheard = {2}}, 0));
  EXPECT_FALSE(may_go_on({.there = {0}, .unheard = {1}, .new_unheard = {2}}, 0));
  EXPECT_FALSE(may_go_on({.there = {}, .unheard = {0}, .new_there = {2}}, 0));
  EXPECT_TRUE(may_go_on({.there = {1}, .unheard = {0}, .new_there = {2}}, 2));
}

TEST(CutOff, SaysWhomItHears) {
  EXPECT_EQ(
      why_cut_off({.there = {}, .unheard = {1}, .new_there = {3}, .new_unheard = {0}}, 0),
      "this worker is cut off: it hears worker 3, and nothing of workers 0, 1; they may go on "
      "without it; start it again once the network is back");
}

/// Workers in parts, of which some have ended; each knows only of some ends.
TEST(CutOff, AtMostOnePartGoesOn) {
  Rng rng(7);
  int going_on_of_two = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const int workers = 2 + static_cast<int>(rng.below(9));
    const std::uint64_t parts = 2 + rng.below(2);
    std::vector<std::uint64_t> part_of;
    bool has_anybody_ended = false;
    for (int rank = 0; rank < workers; ++rank) {
      const bool has_ended = rng.below(8) == 0;
      part_of.push_back(has_ended ? parts : rng.below(parts));
      has_anybody_ended = has_anybody_ended || has_ended;
    }
    std::set<std::uint64_t> going_on;
    for (int rank = 0; rank < workers; ++rank) {
      const std::uint64_t own = part_of[static_cast<std::size_t>(rank)];
      if (own == parts) continue;
      Heard heard;
      for (int other = 0; other < workers; ++other) {
        const std::uint64_t its = part_of[static_cast<std::size_t>(other)];
        const bool is_known_to_have_ended = its == parts && rng.below(2) == 0;
        if (its == own)
          heard.there.push_back(other);
        else if (!is_known_to_have_ended)
          heard.unheard.push_back(other);
      }
      if (may_go_on(heard, 0)) going_on.insert(own);
    }
    EXPECT_LE(going_on.size(), 1U) << "trial " << trial;
    if (parts == 2 && !has_anybody_ended) {
      EXPECT_EQ(going_on.size(), 1U) << "trial " << trial;
      ++going_on_of_two;
    }
  }
  EXPECT_GT(going_on_of_two, 300);
}

}  // namespace cut_off_test
}  // namespace gossamer
