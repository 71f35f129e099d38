#include "gossamer/torch/tensors/module_tensors.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

namespace gossamer {
namespace {

/// Named parameters without a forward.
struct Bag : torch::nn::Module {
  at::Tensor add(const std::string& name, at::Tensor value, bool trained = true) {
    return register_parameter(name, std::move(value), trained);
  }
  at::Tensor keep(const std::string& name, at::Tensor value) {
    return register_buffer(name, std::move(value));
  }
};

std::string names_of(const ModuleTensors& tensors) {
  std::string names;
  for (const NamedTensor& named : tensors.trained) names += named.name;
  return names;
}

TEST(ModuleTensors, AreEachThereOnce) {
  Bag bag;
  const at::Tensor shared = bag.add("a", at::ones({4}));
  bag.add("b", shared);
  const at::Tensor frozen = bag.add("frozen", at::ones({3}), false);
  const at::Tensor mean = bag.keep("mean", at::zeros({2}));
  bag.keep("alias", mean);
  const at::Tensor steps = bag.keep("steps", at::zeros({}, at::kLong));
  const ModuleTensors tensors = tensors_of(bag);
  EXPECT_EQ(names_of(tensors), "a");
  ASSERT_EQ(tensors.others.size(), 3u);
  EXPECT_TRUE(tensors.others[0].is_same(frozen));
  EXPECT_TRUE(tensors.others[1].is_same(mean));
  EXPECT_TRUE(tensors.others[2].is_same(steps));
  ASSERT_EQ(floating_buffers(bag).size(), 1u);
  EXPECT_TRUE(floating_buffers(bag)[0].is_same(mean));
}

TEST(ModuleTensors, LieInTheOrderOfCompletionAndUnknownOnesBehind) {
  Bag bag;
  for (const char* name : {"a", "b", "c", "d"}) bag.add(name, at::ones({3}));
  const ModuleTensors tensors = tensors_of(bag, {.completion = {"b", "gone", "d"}});
  std::string order;
  for (const ParameterSlot& slot : layout_of(tensors.trained, {}).slots) order += slot.info.name;
  EXPECT_EQ(order, "bdca");
}

TEST(ModuleTensors, VectorsHaveAGroupOfTheirOwn) {
  Bag bag;
  bag.add("weight", at::ones({3, 3}));
  bag.add("bias", at::ones({3}));
  const ModuleTensors usual = tensors_of(bag);
  EXPECT_EQ(usual.trained[0].group, 0);
  EXPECT_EQ(usual.trained[1].group, 1);
  const ModuleTensors own =
      tensors_of(bag, {.group_of = [](const auto&, const auto&) { return 7; }});
  EXPECT_EQ(own.trained[0].group, 7);
}

TEST(ModuleTensors, ForgetTheirGradients) {
  Bag bag;
  const at::Tensor w = bag.add("w", at::ones({3}));
  w.sum().backward();
  ASSERT_TRUE(w.grad().defined());
  forget_gradients(tensors_of(bag).trained);
  EXPECT_FALSE(w.grad().defined());
}

}  // namespace
}  // namespace gossamer
