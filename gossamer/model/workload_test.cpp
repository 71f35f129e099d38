#include "gossamer/model/workload.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace gossamer {
namespace {

TEST(Workload, SharesAreOfTheElements) {
  EXPECT_EQ(elements_of({.buckets = {1, 0, 3}}), 4);
  EXPECT_EQ(share_of({.buckets = {1, 0, 3}}, 2), 0.75);
  EXPECT_EQ(share_of({.buckets = {0, 0}}, 0), 0.5);
}

TEST(Workload, WhatMakesNoSenseIsRefused) {
  const Workload good{.buckets = {4}, .compute = {.mean_s = 1}};
  EXPECT_NO_THROW(check_workload(good, 3));
  const auto refused = [&](auto change) {
    Workload bad = good;
    change(bad);
    EXPECT_THROW(check_workload(bad, 3), std::invalid_argument);
  };
  refused([](Workload& w) { w.buckets.clear(); });
  refused([](Workload& w) { w.buckets = {1, -1}; });
  refused([](Workload& w) { w.compute.mean_s = -1; });
  refused([](Workload& w) { w.compute.mean_s = std::nan(""); });
  refused([](Workload& w) { w.forward_share = 1.5; });
  refused([](Workload& w) { w.compute.factors = {1, 1}; });
  refused([](Workload& w) { w.compute.jitter = Jitter::trace; });
}

}  // namespace
}  // namespace gossamer
