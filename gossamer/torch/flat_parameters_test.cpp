#include "gossamer/torch/flat_parameters.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>

#include "gossamer/torch/gradient_watch.h"

namespace gossamer {
namespace {

/// Named parameters around a forward that the tests write themselves.
struct Bag : torch::nn::Module {
  at::Tensor add(const std::string& name, at::Tensor value, bool trained = true) {
    return register_parameter(name, std::move(value), trained);
  }
};

at::Tensor counting(std::vector<std::int64_t> sizes, double from) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return at::arange(from, from + static_cast<double>(count), at::kFloat).view(sizes);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.detach().contiguous();
  const at::Tensor y = b.detach().contiguous();
  return x.nbytes() == y.nbytes() &&
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

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
        EXPECT_EQ(bucket.first, ends[static_cast<std::size_t>(bucket.array)]);
        EXPECT_EQ(bucket.count % kBucketAlignment, 0);
        ends[static_cast<std::size_t>(bucket.array)] += bucket.count;
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

TEST(FlatLayout, RefusesOptionsThatAreNotPositive) {
  EXPECT_THROW(plan_layout({}, {.bucket_bytes = 0}), std::invalid_argument);
  EXPECT_THROW(plan_layout({}, {.min_buckets = 0}), std::invalid_argument);
  EXPECT_THROW(plan_layout({}, {.bucket_multiple = -1}), std::invalid_argument);
}

TEST(FlatParameters, KeepTheBitsAndBecomeViews) {
  Bag bag;
  const at::Tensor weight = bag.add("weight", counting({7, 9}, 1));
  const at::Tensor bias = bag.add("bias", counting({9}, -4));
  const at::Tensor weight_before = weight.detach().clone();
  const at::Tensor bias_before = bias.detach().clone();
  FlatParameters flat = flatten_parameters(bag);
  EXPECT_TRUE(same_bits(weight, weight_before));
  EXPECT_TRUE(same_bits(bias, bias_before));
  EXPECT_TRUE(flat.notes.empty());

  bucket_values<float>(flat, 0)[0] = 77;  // the bias was registered last and so lies first
  EXPECT_EQ(bias[0].item<float>(), 77);
  EXPECT_EQ(flat.layout.slots[0].info.group, 1);
  EXPECT_EQ(flat.layout.slots[1].info.group, 0);
  const auto address = reinterpret_cast<std::uintptr_t>(weight.grad().const_data_ptr());
  EXPECT_EQ(address % 64, 0u);
}

TEST(FlatParameters, HaveStoragesOfTheirOwnThatOutliveTheArray) {
  at::Tensor kept;
  {
    Bag bag;
    kept = bag.add("kept", counting({3, 5}, 1));
    const at::Tensor other = bag.add("other", counting({40}, 100));
    const FlatParameters flat = flatten_parameters(bag);
    EXPECT_EQ(kept.storage().nbytes(), 15 * sizeof(float));
    EXPECT_EQ(kept.storage_offset(), 0);
    EXPECT_FALSE(kept.storage().is_alias_of(other.storage()));
    EXPECT_TRUE(kept.storage().resizable());
    const auto* first = static_cast<const float*>(kept.const_data_ptr());
    const auto* array = static_cast<const float*>(flat.values[0].const_data_ptr());
    EXPECT_TRUE(first >= array && first + 15 <= array + flat.values[0].numel());
  }
  EXPECT_TRUE(same_bits(kept, counting({3, 5}, 1)));
}

TEST(FlatParameters, GradientsAccumulateInPlaceAndAreZeroedInPlace) {
  Bag bag;
  const at::Tensor w = bag.add("w", counting({4}, 1));
  const at::Tensor unused = bag.add("unused", counting({4}, 1));
  FlatParameters flat = flatten_parameters(bag);
  const void* place = w.grad().const_data_ptr();
  for (int pass = 1; pass <= 3; ++pass) {
    (w * w).sum().backward();
    EXPECT_EQ(w.grad().const_data_ptr(), place);
    EXPECT_TRUE(at::equal(w.grad(), 2 * pass * w.detach()));
  }
  EXPECT_EQ(unused.grad().abs().sum().item<float>(), 0);
  zero_gradients(flat);
  EXPECT_EQ(w.grad().const_data_ptr(), place);
  EXPECT_EQ(w.grad().abs().sum().item<float>(), 0);
}

TEST(FlatParameters, LieInTheOrderOfCompletionAndUnknownOnesBehind) {
  Bag bag;
  for (const char* name : {"a", "b", "c", "d"}) bag.add(name, counting({3}, name[0]));
  const FlatParameters flat = flatten_parameters(bag, {.completion = {"b", "gone", "d"}});
  std::string order;
  for (const ParameterSlot& slot : flat.layout.slots) order += slot.info.name;
  EXPECT_EQ(order, "bdca");
  for (std::size_t s = 0; s < order.size(); ++s) {
    EXPECT_EQ(flat.parameters[s][0].item<float>(), static_cast<float>(order[s]));
  }
}

TEST(FlatParameters, SharedOnesAreLaidOutOnceAndFrozenOnesListed) {
  Bag bag;
  const at::Tensor shared = bag.add("a", counting({4}, 1));
  bag.add("b", shared);
  const at::Tensor frozen = bag.add("frozen", counting({3}, 5), false);
  const FlatParameters flat = flatten_parameters(bag);
  ASSERT_EQ(flat.layout.slots.size(), 1u);
  EXPECT_EQ(flat.layout.slots[0].info.name, "a");
  EXPECT_EQ(flat.layout.slots[0].info.aliases, std::vector<std::string>{"b"});
  ASSERT_EQ(flat.frozen.size(), 1u);
  EXPECT_EQ(flat.frozen[0].name, "frozen");
  EXPECT_TRUE(flat.frozen[0].tensor.is_same(frozen));
}

TEST(FlatParameters, NonContiguousOnesAreMadeContiguousWithTheirGradient) {
  Bag bag;
  const at::Tensor w = bag.add("w", counting({3, 5}, 0).t());
  (w * w).sum().backward();
  const at::Tensor before = w.detach().clone();
  const FlatParameters flat = flatten_parameters(bag);
  EXPECT_TRUE(w.is_contiguous());
  EXPECT_TRUE(at::equal(w, before));
  EXPECT_TRUE(at::equal(w.grad(), 2 * before));
  EXPECT_EQ(flat.notes.size(), 1u);
  (w * w).sum().backward();
  EXPECT_TRUE(at::equal(w.grad(), 4 * before));
}

TEST(FlatParameters, EachElementTypeHasItsArray) {
  Bag bag;
  bag.add("single", counting({70}, 0));
  const at::Tensor twice = bag.add("double", counting({5}, 0).to(at::kDouble));
  FlatParameters flat = flatten_parameters(bag, {.layout = {.min_buckets = 1}});
  ASSERT_EQ(flat.layout.buckets.size(), 2u);
  EXPECT_EQ(bucket_dtype(flat, 0), DType::f64);
  EXPECT_EQ(bucket_values<double>(flat, 0)[3], 3);
  EXPECT_EQ(bucket_values<float>(flat, 1)[69], 69);
  EXPECT_EQ(bucket_value_bytes(flat, 1).size(), 128 * sizeof(float));
  EXPECT_THROW(bucket_values<float>(flat, 0), std::logic_error);
}

TEST(FlatParameters, RefuseWhatTheyCannotHold) {
  Bag half;
  half.add("w", counting({4}, 0).to(at::kBFloat16));
  EXPECT_THROW(flatten_parameters(half), std::invalid_argument);
  Bag empty;
  EXPECT_THROW(flatten_parameters(empty), std::invalid_argument);
  Bag overlapping;
  const at::Tensor memory = counting({8}, 0);
  overlapping.add("a", memory.narrow(0, 0, 5));
  overlapping.add("b", memory.narrow(0, 4, 4));
  EXPECT_THROW(flatten_parameters(overlapping), std::invalid_argument);
}

TEST(FlatParameters, DetachedGradientsAreReattached) {
  Bag bag;
  const at::Tensor a = bag.add("a", counting({4}, 1));
  const at::Tensor b = bag.add("b", counting({4}, 1));
  FlatParameters flat = flatten_parameters(bag);
  const void* place = a.grad().const_data_ptr();
  a.mutable_grad() = at::Tensor();  // what Module::zero_grad() does
  (2 * a + 3 * b).sum().backward();
  EXPECT_NE(a.grad().const_data_ptr(), place);
  EXPECT_EQ(reattach_gradients(flat), 1);
  EXPECT_EQ(a.grad().const_data_ptr(), place);
  EXPECT_EQ(a.grad().sum().item<float>(), 8);
  EXPECT_EQ(reattach_gradients(flat), 0);
  bag.zero_grad();
  EXPECT_EQ(reattach_gradients(flat), 2);
  EXPECT_EQ(b.grad().abs().sum().item<float>(), 0);
  a.set_data(counting({4}, 0));
  EXPECT_THROW(reattach_gradients(flat), std::invalid_argument);
}

TEST(FlatParameters, FlattenedAgainTheyKeepValuesAndGradients) {
  Bag bag;
  const at::Tensor a = bag.add("a", counting({20}, 1));
  const at::Tensor b = bag.add("b", counting({4}, 1));
  const FlatParameters first = flatten_parameters(bag);
  (2 * a.sum() + 3 * b.sum()).backward();
  const FlatParameters second = flatten_parameters(bag, {.layout = {.min_buckets = 1}});
  EXPECT_TRUE(at::equal(a, counting({20}, 1)));
  EXPECT_EQ(a.grad().sum().item<float>(), 40);
  EXPECT_EQ(b.grad().sum().item<float>(), 12);
}

/// Three parameters of one bucket each (c, b, a in memory) in a chain a → b → c.
struct Chain {
  Chain() {
    a = bag.add("a", at::ones({64}));
    b = bag.add("b", at::ones({64}));
    c = bag.add("c", at::ones({64}));
    flat = flatten_parameters(bag, {.layout = {.min_buckets = 3}});
  }
  Bag bag;
  at::Tensor a, b, c;
  FlatParameters flat;
};

TEST(GradientWatch, ReportsBucketsInTheOrderOfTheBackwardWithTheirGradients) {
  Chain chain;
  std::vector<int> order;
  std::vector<float> first_gradient;
  GradientWatch watch(chain.flat, [&](int bucket) {
    order.push_back(bucket);
    first_gradient.push_back(bucket_gradients<float>(chain.flat, bucket)[0]);
  });
  for (int step = 1; step <= 2; ++step) {
    order.clear();
    first_gradient.clear();
    watch.begin_backward();
    (((chain.a * 2 + chain.b) * 3 + chain.c) * 5).sum().backward();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
    watch.finish_backward();
    EXPECT_EQ(order.size(), 3u);
    const auto s = static_cast<float>(step);
    EXPECT_EQ(first_gradient, (std::vector<float>{5 * s, 15 * s, 30 * s}));
  }
}

TEST(GradientWatch, UnusedParametersAreReportedAtTheEnd) {
  Chain chain;
  std::vector<int> order;
  GradientWatch watch(chain.flat, [&](int bucket) { order.push_back(bucket); });
  watch.begin_backward();
  (chain.b * chain.b).sum().backward();
  EXPECT_EQ(order, (std::vector<int>{1}));
  watch.finish_backward();
  EXPECT_EQ(order, (std::vector<int>{1, 0, 2}));
}

TEST(GradientWatch, ABucketWaitsForAllParametersThatReachIntoIt) {
  Bag bag;
  const at::Tensor early = bag.add("early", at::ones({96}));
  const at::Tensor late = bag.add("late", at::ones({96}));
  const FlatParameters flat = flatten_parameters(bag, {.layout = {.min_buckets = 3}});
  std::vector<int> order;
  GradientWatch watch(flat, [&](int bucket) { order.push_back(bucket); });
  watch.begin_backward();
  late.sum().backward();
  EXPECT_EQ(order, (std::vector<int>{0}));  // bucket 1 also holds a part of `early`
  early.sum().backward();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(GradientWatch, ASharedParameterArrivesOncePerBackward) {
  Bag bag;
  const at::Tensor w = bag.add("w", at::ones({64}));
  const FlatParameters flat = flatten_parameters(bag);
  std::vector<float> seen;
  GradientWatch watch(flat, [&](int) { seen.push_back(w.grad()[0].item<float>()); });
  watch.begin_backward();
  (w * 2 + (w * w).relu() * w).sum().backward();  // derivative 2 + 3w²
  EXPECT_EQ(seen, std::vector<float>{5});
}

TEST(GradientWatch, PassesOutsideTheWindowCountNothing) {
  Chain chain;
  int calls = 0;
  {
    GradientWatch watch(chain.flat, [&](int) { ++calls; });
    chain.a.sum().backward();
    EXPECT_EQ(calls, 0);
    watch.begin_backward();
    watch.finish_backward();
    EXPECT_EQ(calls, 3);
    watch.finish_backward();
    EXPECT_EQ(calls, 3);
    int others = 0;
    GradientWatch other(chain.flat, [&](int) { ++others; });  // beside the hooks of others
    other.begin_backward();
    chain.c.sum().backward();
    EXPECT_EQ(others, 1);
    EXPECT_EQ(calls, 3);
    watch.begin_backward();
    chain.a.sum().backward();
    EXPECT_THROW(chain.a.sum().backward(), std::invalid_argument);
  }
  calls = 0;
  chain.a.sum().backward();
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace gossamer
