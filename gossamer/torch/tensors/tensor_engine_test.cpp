// One worker's TensorEngine over tensors as a backward pass finds them.
#include "gossamer/torch/tensors/tensor_engine.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gossamer/base/test_errors.h"
#include "gossamer/engine/non_finite.h"
#include "gossamer/torch/testing/lone_engine.h"

namespace gossamer {
namespace {

at::Tensor parameter(double value, std::int64_t count = 64,
                     c10::ScalarType dtype = c10::ScalarType::Float) {
  return at::full({count}, value, dtype).requires_grad_();
}

float first_of(const at::Tensor& tensor) { return tensor[0].item<float>(); }

TEST(TensorEngine, StepsEachBucketOnceItsGradientsAreThere) {
  const at::Tensor a = parameter(1);
  const at::Tensor b = parameter(2);
  LoneEngine alone({{"a", a}, {"b", b}}, UpdateAt::backward, {.min_buckets = 2});
  b.sum().backward();
  EXPECT_EQ(first_of(b), 1);
  EXPECT_EQ(first_of(a), 1);
  (3 * a).sum().backward();
  EXPECT_EQ(first_of(a), -2);
  alone.engine.step(alone.groups);
  EXPECT_EQ(alone.engine.early_buckets(), 2);
  EXPECT_EQ(first_of(a), -2);
  EXPECT_EQ(first_of(b), 1);
}

TEST(TensorEngine, ABucketWaitsForAllTensorsThatReachIntoIt) {
  const at::Tensor early = parameter(1, 96);
  const at::Tensor late = parameter(1, 96);
  LoneEngine alone({{"early", early}, {"late", late}}, UpdateAt::backward, {.min_buckets = 3});
  late.sum().backward();
  EXPECT_EQ(first_of(late), 0);
  EXPECT_EQ(late[95].item<float>(), 1);  // its bucket also holds a part of `early`
  early.sum().backward();
  EXPECT_EQ(late[95].item<float>(), 0);
  EXPECT_EQ(first_of(early), 0);
}

TEST(TensorEngine, LeavesUnusedTensorsAsTheyAre) {
  const at::Tensor used = parameter(1);
  const at::Tensor unused = parameter(1);
  LoneEngine alone({{"used", used}, {"unused", unused}}, UpdateAt::backward, {.min_buckets = 2});
  used.sum().backward();
  alone.engine.step(alone.groups);
  EXPECT_EQ(alone.engine.early_buckets(), 1);
  EXPECT_EQ(first_of(used), 0);
  EXPECT_EQ(first_of(unused), 1);
  EXPECT_EQ(alone.engine.updates(0), 1);
  EXPECT_EQ(alone.engine.updates(1), 0);
}

TEST(TensorEngine, ATensorThatIsUsedTwiceStepsWithItsWholeGradient) {
  const at::Tensor w = parameter(1);
  LoneEngine alone({{"w", w}}, UpdateAt::backward);
  (w * 2 + (w * w).relu() * w).sum().backward();  // derivative 2 + 3 w²
  EXPECT_EQ(first_of(w), -4);
}

TEST(TensorEngine, RefusesASecondGradientForAStepThatHasBegun) {
  const at::Tensor a = parameter(1);
  const at::Tensor b = parameter(1);
  LoneEngine alone({{"a", a}, {"b", b}}, UpdateAt::backward);
  a.sum().backward();
  const std::string told = message_of([&] { a.sum().backward(); });
  EXPECT_NE(told.find("second gradient arrived for parameter 'a'"), std::string::npos) << told;
}

TEST(TensorEngine, MeasuresTheNormOfTheWholeGradient) {
  for (const bool measures : {false, true}) {
    const at::Tensor a = parameter(1, 3);
    const at::Tensor b = parameter(1, 1, c10::ScalarType::Double);
    LoneEngine alone({{"a", a}, {"b", b}}, UpdateAt::step, {.min_buckets = 1}, measures);
    ((a * a).sum() + 2 * b.sum()).backward();
    EXPECT_NEAR(alone.engine.step(alone.groups).grad_norm, 4, 1e-6) << measures;
  }
}

TEST(TensorEngine, RefusesAGradientThatIsNotFiniteByItsName) {
  for (const bool measures : {false, true}) {
    const at::Tensor a = parameter(1);
    const at::Tensor b = parameter(1);
    LoneEngine alone({{"a", a}, {"b", b}}, UpdateAt::step, {.min_buckets = 1}, measures);
    a.sum().backward();
    (b * std::numeric_limits<double>::infinity()).sum().backward();
    const std::string told =
        message_of<NonFiniteGradient>([&] { alone.engine.step(alone.groups); });
    EXPECT_NE(told.find("parameter 'b'"), std::string::npos) << told;
    EXPECT_EQ(first_of(a), 1);
    EXPECT_EQ(first_of(b), 1);
  }
}

TEST(TensorEngine, RefusesWhatItCannotHold) {
  const at::Tensor whole = at::ones({4}, at::kLong);
  EXPECT_THROW(LoneEngine({{"whole", whole}}), std::invalid_argument);
  EXPECT_THROW(LoneEngine({{"complex", parameter(1, 4, c10::ScalarType::ComplexFloat)}}),
               std::invalid_argument);
  EXPECT_THROW(LoneEngine({{"quarter", at::ones({4}).to(c10::ScalarType::Float8_e5m2)}}),
               std::invalid_argument);
  EXPECT_THROW(LoneEngine({}), std::invalid_argument);
}

}  // namespace
}  // namespace gossamer
