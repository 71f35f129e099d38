// What a master keeps of its owner's changes, and an engine over tensors of half precision.
#include "gossamer/torch/tensors/masters.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "gossamer/kernels/random_rounding.h"
#include "gossamer/torch/devices/device_masters.h"
#include "gossamer/torch/tensors/tensor_engine.h"
#include "gossamer/torch/testing/lone_engine.h"

namespace gossamer {
namespace {

constexpr float kLowUlp = 0x1p-7F;  // of BFloat16 at 1

at::Tensor low_tensor(double value, c10::ScalarType dtype = at::kBFloat16) {
  return at::full({64}, value, dtype).requires_grad_();
}

TEST(Masters, AStepOfTheOwnerMovesTheMasterAndANewValueReplacesIt) {
  const at::Tensor tensor = at::full({3000}, 1, at::kBFloat16);
  Master master = make_master(tensor, at::kCPU);
  master.values.add_(0.25F * kLowUlp);  // a mix that the tensor does not show
  take_changes(tensor, master);
  EXPECT_TRUE(master.values.eq(1 + 0.25F * kLowUlp).all().item<bool>());
  tensor[0] = 1 + 2 * kLowUlp;
  tensor[1] = 0;
  tensor[2] = 1.5;
  tensor[2999] = std::nanf("");
  take_changes(tensor, master);
  EXPECT_EQ(master.values[0].item<float>(), 1 + 2.25F * kLowUlp);
  EXPECT_EQ(master.values[1].item<float>(), 0);
  EXPECT_EQ(master.values[2].item<float>(), 1.5);
  EXPECT_EQ(master.values[3].item<float>(), 1 + 0.25F * kLowUlp);
  EXPECT_TRUE(std::isnan(master.values[2999].item<float>()));
  EXPECT_TRUE(master.written.slice(0, 0, 2999).equal(tensor.slice(0, 0, 2999)));
}

TEST(Masters, FollowAnyStrides) {
  const at::Tensor base = at::arange(48, at::kFloat).to(at::kHalf).view({2, 3, 8});
  const at::Tensor turned = base.permute({2, 0, 1});  // dense
  const at::Tensor gaps = base.slice(2, 0, 8, 2);     // not
  for (const at::Tensor& tensor : {turned, gaps}) {
    Master master = make_master(tensor, at::kCPU);
    EXPECT_TRUE(master.values.equal(tensor.to(at::kFloat)));
    tensor.add_(64);
    take_changes(tensor, master);
    EXPECT_TRUE(master.values.equal(tensor.to(at::kFloat)));
    master.values.mul_(2);
    write_at_random(master, tensor, 1);
    EXPECT_TRUE(master.values.equal(tensor.to(at::kFloat)));
  }
}

/// Numbers of all sizes with both signs, and those that are special.
at::Tensor all_kinds(std::int64_t count) {
  at::manual_seed(3);
  const at::Tensor sizes = at::exp2(at::rand({count}) * 280 - 150);
  const at::Tensor numbers = sizes * at::randn({count});
  const float special[] = {0.0F, -0.0F, INFINITY, -INFINITY, std::nanf(""), 3.4e38F, -65519.0F};
  for (std::size_t i = 0; i < std::size(special); ++i) {
    numbers[static_cast<std::int64_t>(i)] = special[i];
  }
  return numbers;
}

TEST(Masters, TorchsOperationsRoundAsTheKernelsDo) {
  for (const auto& [type, format] :
       {std::pair{at::kBFloat16, HalfFormat::bf16}, std::pair{at::kHalf, HalfFormat::fp16}}) {
    for (const std::int64_t count : {1, 4095, 4096, 20000, 4 * (1 << 20) + 4097}) {
      const at::Tensor x = all_kinds(std::max<std::int64_t>(count, 7)).slice(0, 0, count);
      const auto size = static_cast<std::size_t>(count);
      std::vector<std::uint16_t> expected(size);
      round_at_random(format, {x.const_data_ptr<float>(), size}, expected, 0x9876543210abcdefU);
      const at::Tensor got = at::empty({count}, type);
      round_queued(x, got, 0x9876543210abcdefU);
      const auto* const codes = static_cast<const std::uint16_t*>(got.const_data_ptr());
      EXPECT_EQ(std::vector<std::uint16_t>(codes, codes + size), expected) << count;
    }
  }
}

TEST(Masters, TorchsOperationsTakeChangesAsTheLoopDoes) {
  const at::Tensor before = all_kinds(5000).to(at::kBFloat16);
  at::manual_seed(4);
  const at::Tensor factors = at::where(at::rand({5000}).lt(0.5), 1, 1 + 0.3 * at::randn({5000}));
  const at::Tensor after = (before.to(at::kFloat) * factors).to(at::kBFloat16);
  Master looped = make_master(before, at::kCPU);
  looped.values.mul_(1 + 0x1p-12);
  const Master queued{.values = looped.values.clone(), .written = looped.written.clone()};
  take_changes(after, looped);
  take_changes_queued(after, queued.written, queued.values);
  EXPECT_TRUE(queued.written.view(at::kShort).equal(looped.written.view(at::kShort)));
  EXPECT_TRUE(at::allclose(queued.values, looped.values, 0, 0, /*equal_nan=*/true));
}

TEST(Masters, KeysTellNamesWorkersAndStepsApart) {
  EXPECT_EQ(rounding_key("a", 1, 2), rounding_key("a", 1, 2));
  EXPECT_NE(rounding_key("a", 1, 2), rounding_key("b", 1, 2));
  EXPECT_NE(rounding_key("a", 1, 2), rounding_key("a", 2, 1));
  EXPECT_NE(rounding_key("a", 1, 2), rounding_key("a", 1, 3));
}

TEST(Masters, UpdatesBelowTheLastPlaceAddUp) {
  for (const UpdateAt update : {UpdateAt::step, UpdateAt::backward}) {
    for (const auto type : {at::kBFloat16, at::kHalf}) {
      const at::Tensor low = low_tensor(1, type);
      LoneEngine alone({{"low", low}}, update);
      const double rate = type == at::kHalf ? 0x1p-13 : 0x1p-10;  // an eighth of the last place
      alone.groups[0].lr = rate;
      for (int step = 0; step < 64; ++step) {
        low.mutable_grad() = at::Tensor();
        low.sum().backward();
        alone.engine.step(alone.groups);
      }
      const at::Tensor master = alone.engine.home(0);
      EXPECT_EQ(master.scalar_type(), at::kFloat);
      EXPECT_TRUE(master.eq(1 - 64 * rate).all().item<bool>());
      EXPECT_LE((low.detach() - master).abs().max().item<float>(), 8 * rate);
    }
  }
}

TEST(Masters, MixedModelsStepAllTheirTensors) {
  const at::Tensor low = low_tensor(2);
  const at::Tensor single = low_tensor(2, at::kFloat);
  LoneEngine alone({{"low", low}, {"single", single}});
  (low.to(at::kFloat) + single).sum().backward();
  alone.engine.step(alone.groups);
  EXPECT_TRUE(low.eq(1).all().item<bool>());
  EXPECT_TRUE(single.eq(1).all().item<bool>());
}

TEST(Masters, AnEditInTheBackwardIsKept) {
  const at::Tensor early = low_tensor(1);
  const at::Tensor late = low_tensor(1);
  LoneEngine alone({{"early", early}, {"late", late}}, UpdateAt::backward);
  alone.groups[0].lr = 0.125;
  late.sum().backward();
  {
    const at::NoGradGuard no_grad;
    late.sub_(0.25);
  }
  early.sum().backward();
  alone.engine.step(alone.groups);
  EXPECT_EQ(late[0].item<float>(), 0.625);
  EXPECT_EQ(early[0].item<float>(), 0.875);
}

TEST(Masters, TheAverageIsRoundedToNearestAndLocalValuesComeBack) {
  const at::Tensor low = low_tensor(1);
  LoneEngine alone({{"low", low}});
  alone.engine.home(0).add_(0.375F * kLowUlp);
  alone.engine.step(alone.groups);  // no gradient: written at random
  const at::Tensor shown = low.detach().clone();
  EXPECT_FALSE(shown.eq(1).all().item<bool>());
  const at::Tensor master = alone.engine.home(0).clone();
  alone.engine.load_average();
  EXPECT_TRUE(low.eq(1).all().item<bool>());
  alone.engine.restore_local();
  EXPECT_TRUE(low.equal(shown));
  EXPECT_TRUE(alone.engine.home(0).equal(master));
}

}  // namespace
}  // namespace gossamer
