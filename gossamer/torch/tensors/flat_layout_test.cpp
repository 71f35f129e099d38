#include "gossamer/torch/tensors/flat_layout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "gossamer/base/index.h"

namespace gossamer {
namespace {

TEST(FlatLayout, SegmentsCoverEveryBucketAndBucketsEveryArray) {
  for (int parameters = 1; parameters <= 9; ++parameters) {
    std::vector<ParameterInfo> infos;
    for (int i = 0; i < parameters; ++i) {
      infos.push_back({.name = std::to_string(i),
                       .dtype = i % 4 == 3 ? DType::f64 : DType::f32,
                       .sizes = {i * 37 + 1, i % 3 + 1},
                       .group = i % 2});
    }
    for (const int buckets : {1, 3, 8}) {
      const FlatLayout layout = plan_layout(infos, {.min_buckets = buckets});
      std::vector<std::int64_t> ends(layout.arrays.size(), 0);
      for (const BucketLayout& bucket : layout.buckets) {
        std::int64_t covered = 0;
        for (const Segment& segment : bucket.segments) {
          EXPECT_EQ(segment.offset, covered);
          covered += segment.count;
        }
        EXPECT_EQ(covered, bucket.count);
        EXPECT_EQ(bucket.first, ends[at(bucket.array)]);
        EXPECT_EQ(bucket.count % kBucketAlignment, 0);
        ends[at(bucket.array)] += bucket.count;
      }
      for (std::size_t a = 0; a < ends.size(); ++a) EXPECT_EQ(ends[a], layout.arrays[a].count);
    }
  }
}

TEST(FlatLayout, BucketsAreEqualUpToTheAlignmentAndAMultipleOfThePeriod) {
  const std::vector<ParameterInfo> infos{{.name = "w", .sizes = {1000, 33}}};
  const FlatLayout layout = plan_layout(infos, {.min_buckets = 5, .bucket_multiple = 3});
  ASSERT_EQ(layout.buckets.size(), 6u);
  for (const BucketLayout& bucket : layout.buckets) {
    EXPECT_LE(std::abs(bucket.count - 33000 / 6), kBucketAlignment);
  }
  EXPECT_EQ(layout.slots[0].first_bucket, 0);
  EXPECT_EQ(layout.slots[0].last_bucket, 5);
}

TEST(FlatLayout, ReverseOrderPutsTheLastRegisteredFirst) {
  const std::vector<ParameterInfo> infos{{.name = "first", .sizes = {3}},
                                         {.name = "last", .sizes = {5}}};
  const FlatLayout layout = plan_layout(infos, {});
  EXPECT_EQ(layout.slots[0].info.name, "last");
  EXPECT_EQ(layout.slots[0].offset, 0);
  EXPECT_EQ(layout.slots[1].offset, kSlotAlignment);
}

TEST(FlatLayout, WhatIsBesideComesLastInArraysOfItsOwn) {
  const std::vector<ParameterInfo> infos = {{.name = "a", .sizes = {100}},
                                            {.name = "b", .sizes = {100}},
                                            {.name = "z", .sizes = {100}, .beside_every = 1},
                                            {.name = "y", .sizes = {100}, .beside_every = 4},
                                            {.name = "x", .sizes = {100}, .beside_every = 1}};
  const FlatLayout layout = plan_layout(infos, {.min_buckets = 1});
  ASSERT_EQ(layout.arrays.size(), 3u);
  EXPECT_EQ(layout.arrays[0].beside_every, 0);
  std::string order;
  for (const ParameterSlot& slot : layout.slots) {
    order += slot.info.name;
    EXPECT_EQ(layout.arrays[at(slot.array)].beside_every, slot.info.beside_every);
  }
  EXPECT_EQ(order.substr(0, 2), "ba");
  EXPECT_EQ(order, "baxzy");
}

TEST(FlatLayout, RefusesOptionsThatAreNotPositive) {
  EXPECT_THROW(plan_layout({}, {.bucket_bytes = 0}), std::invalid_argument);
  EXPECT_THROW(plan_layout({}, {.min_buckets = 0}), std::invalid_argument);
  EXPECT_THROW(plan_layout({}, {.bucket_multiple = -1}), std::invalid_argument);
}

TEST(FlatLayout, NamesTheParameterOfAnElement) {
  const std::vector<ParameterInfo> infos{{.name = "first", .sizes = {100}},
                                         {.name = "last", .sizes = {5}}};
  const FlatLayout layout = plan_layout(infos, {.min_buckets = 2});
  EXPECT_EQ(bucket_sizes(layout), (std::vector<std::int64_t>{64, 64}));
  EXPECT_EQ(name_at(layout, 0, 4), "parameter 'last'");
  EXPECT_EQ(name_at(layout, 0, 5), "bucket 0");  // padding
  EXPECT_EQ(name_at(layout, 0, kSlotAlignment), "parameter 'first'");
  EXPECT_EQ(name_at(layout, 1, 51), "parameter 'first'");
  EXPECT_EQ(name_at(layout, 1, 52), "bucket 1");
}

}  // namespace
}  // namespace gossamer
