#include "gossamer/recipe/host_shape.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace gossamer {
namespace {

using Counts = std::vector<int>;

TEST(ParseCounts, ReadsOneNumberOrAList) {
  EXPECT_EQ(parse_counts("--per-host", "4"), Counts{4});
  EXPECT_EQ(parse_counts("--per-host", "1,2,4"), (Counts{1, 2, 4}));
}

TEST(ParseCounts, RefusesWhatIsNotAWholeNumberFromOneUp) {
  for (const char* text : {"", "0", "-1", "1,", ",1", "1,,2", "2x", "1.5", " 1", "99999999999"}) {
    EXPECT_THROW(parse_counts("--per-host", text), std::invalid_argument) << text;
  }
}

TEST(ParseHostShape, RepeatsOneNumberAndTakesAListAsTheHosts) {
  EXPECT_EQ(parse_host_shape(3, "2").workers_per_host, (Counts{2, 2, 2}));
  EXPECT_EQ(parse_host_shape(4, "1,2,4").workers_per_host, (Counts{1, 2, 4}));
}

TEST(HostShapeOf, TakesDefaultsAndRefusesContradictions) {
  EXPECT_EQ(host_shape_of(0, 4, "2", "x").workers_per_host, (Counts{2, 2, 2, 2}));
  EXPECT_EQ(host_shape_of(0, 4, "1,2", "x").workers_per_host, (Counts{1, 2}));
  EXPECT_EQ(host_shape_of(2, 4, "1,2", "x").workers_per_host, (Counts{1, 2}));
  EXPECT_THROW(host_shape_of(3, 4, "1,2", "x"), std::invalid_argument);
}

TEST(Describe, SaysHostsAndWorkers) {
  EXPECT_EQ(describe(even_hosts(4, 2)), "4 hosts x 2 workers");
  EXPECT_EQ(describe(even_hosts(1, 1)), "1 host x 1 worker");
  EXPECT_EQ(describe({{1, 2, 4}}), "3 hosts with 1, 2, 4 workers");
}

}  // namespace
}  // namespace gossamer
