#include "gossamer/torch/tensors/arrivals.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace gossamer {
namespace {

at::Tensor leaf(double value) { return at::full({3, 4}, value).requires_grad_(true); }

TEST(GradientMark, KnowsTheSameTensorUntilItsValuesChange) {
  at::Tensor gradient = at::ones({3, 4});
  const GradientMark mark(gradient);
  EXPECT_TRUE(mark.is_of(gradient));
  EXPECT_FALSE(mark.is_of(gradient.clone()));
  EXPECT_FALSE(mark.is_of(at::Tensor()));
  gradient.mul_(1.0);  // whatever the values are now
  EXPECT_FALSE(mark.is_of(gradient));
  EXPECT_FALSE(GradientMark().is_of(gradient));
  EXPECT_FALSE(GradientMark(at::Tensor()).is_of(at::Tensor()));
}

TEST(GradientMark, KnowsItsTensorWhateverTheValuesAreAndSparseOnes) {
  at::Tensor gradient = at::ones({3, 4}).to_sparse();
  const GradientMark mark(gradient);
  EXPECT_TRUE(mark.is_of(gradient));
  gradient.mul_(2.0);
  EXPECT_FALSE(mark.is_of(gradient));
  EXPECT_TRUE(mark.is_in(gradient));
  EXPECT_FALSE(mark.is_in(gradient.clone()));
}

TEST(GradientMark, KnowsNoOtherTensorAtTheSamePlace) {
  std::vector<float> memory(12, 1.0F);
  const auto make = [&] { return at::from_blob(memory.data(), {3, 4}); };
  at::Tensor gradient = make();
  const GradientMark mark(gradient);
  gradient = at::Tensor();
  for (int k = 0; k < 50; ++k) EXPECT_FALSE(mark.is_of(make()));
}

TEST(GradientMark, NoticesAChangeOfTheWholeThatRaisesNoVersion) {
  std::vector<float> memory(12);
  std::iota(memory.begin(), memory.end(), 1.0F);
  const at::Tensor gradient = at::from_blob(memory.data(), {3, 4});
  const GradientMark mark(gradient);
  const auto before = memory;
  for (float& value : memory) value *= 2;
  EXPECT_FALSE(mark.is_of(gradient));
  memory = before;
  memory.back() = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(mark.is_of(gradient));
}

TEST(Arrivals, ReportEachAccumulationOnceWithTheGradientInPlace) {
  const std::vector<at::Tensor> tensors{leaf(2), leaf(3), leaf(5)};
  std::vector<std::size_t> arrived;
  const Arrivals arrivals(tensors, [&](std::size_t i) {
    ASSERT_TRUE(tensors[i].grad().defined());
    arrived.push_back(i);
  });
  const auto loss = [&] { return (tensors[0] * tensors[2] + tensors[2]).sum(); };
  loss().backward();  // tensor 2 has two uses, tensor 1 has none
  std::ranges::sort(arrived);
  EXPECT_EQ(arrived, (std::vector<std::size_t>{0, 2}));
  EXPECT_EQ(tensors[2].grad().min().item<double>(), 3.0);
  loss().backward();
  EXPECT_EQ(arrived.size(), 4U);
}

TEST(Arrivals, HearOfWhatIsThawedAndOfNothingAfterTheEnd) {
  at::Tensor frozen = at::ones({2});
  const at::Tensor other = leaf(1);
  int count = 0;
  {
    const Arrivals arrivals({frozen, other}, [&](std::size_t) { ++count; });
    EXPECT_FALSE(frozen.requires_grad());
    frozen.requires_grad_(true);  // nobody is told
    (frozen.sum() * other.sum()).backward();
    EXPECT_EQ(count, 2);
    frozen.requires_grad_(false);
    (frozen.sum() * other.sum()).backward();
    EXPECT_EQ(count, 3);
  }
  other.sum().backward();
  EXPECT_EQ(count, 3);
  const auto accumulator = torch::autograd::impl::grad_accumulator(other);
  EXPECT_TRUE(accumulator->post_hooks().empty());
}

TEST(Arrivals, HearOfWhatIsConvertedAfterWatchNew) {
  at::Tensor tensor = at::ones({2}, at::kInt);  // can have no gradient
  int count = 0;
  Arrivals arrivals({tensor}, [&](std::size_t) { ++count; });
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    tensor.set_data(tensor.detach().to(type));
    tensor.requires_grad_(true);
    arrivals.watch_new();
    tensor.sum().backward();
    tensor.mutable_grad() = at::Tensor();
  }
  EXPECT_EQ(count, 2);
}

TEST(Arrivals, WhatTheyThrowComesOutOfTheBackward) {
  const at::Tensor tensor = leaf(1);
  const Arrivals arrivals({tensor}, [](std::size_t) { throw std::invalid_argument("no"); });
  EXPECT_THROW(tensor.sum().backward(), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
