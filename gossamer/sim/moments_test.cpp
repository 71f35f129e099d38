#include "gossamer/sim/moments.h"

#include <gtest/gtest.h>

namespace gossamer {
namespace {

TEST(Moments, FollowTheElements) {
  const Workload workload{.buckets = {1, 3}, .forward_share = 0.25, .update_s = 1e-6};
  const ComputeMoments moments = moments_of(workload, SimTime(1600));
  EXPECT_EQ(moments.forward, SimTime(400));
  EXPECT_EQ(moments.backward, (std::vector{SimTime(700), SimTime(1600)}));
  EXPECT_EQ(update_time(workload, 0), SimTime(250));
  EXPECT_EQ(update_time(workload, 1), SimTime(750));
}

}  // namespace
}  // namespace gossamer
