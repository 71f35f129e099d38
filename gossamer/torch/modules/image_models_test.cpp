// The published networks for images: their sizes, and that they learn.

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <map>

#include "gossamer/torch/modules/models.h"
#include "gossamer/torch/modules/resnet50.h"
#include "gossamer/torch/process.h"

namespace gossamer {
namespace {

/// Trainable parameters with 1000 classes, as published with the weights of each.
const std::map<std::string_view, std::int64_t> kParameters{
    {"resnet50", 25'557'032}, {"mobilenet_v2", 3'504'872}, {"efficientnet_b0", 5'288'548}};

ModelArgs args_for(std::int64_t side, std::int64_t classes, std::int64_t width = 0) {
  return {.input = {.channels = 3, .height = side, .width = side, .classes = classes},
          .size = {.width = width}};
}

/// Noise around a colour for each of the classes 0, 1, 2, 0, …
Batch made_up(std::int64_t count, std::int64_t side) {
  const at::Tensor targets = at::arange(count, at::kLong).remainder(3);
  const at::Tensor colours = at::eye(3).index_select(0, targets).view({count, 3, 1, 1});
  auto generator = at::detail::createCPUGenerator(1);
  return {.inputs = colours + 0.5 * at::randn({count, 3, side, side}, generator),
          .targets = targets};
}

TEST(ImageModels, HaveTheirPublishedNumberOfParameters) {
  for (const auto& [name, parameters] : kParameters) {
    EXPECT_EQ(parameter_count(find_model(name).make(args_for(224, 1000))), parameters) << name;
  }
}

TEST(ImageModels, AStemForSmallImagesHasItsParametersLess) {
  const std::int64_t less = 64 * 3 * (7 * 7 - 3 * 3);
  const Model small = find_model("resnet50").make(args_for(32, 1000));
  EXPECT_EQ(parameter_count(small), kParameters.at("resnet50") - less);
}

TEST(ImageModels, TakeImagesOfAnySizeAndChannels) {
  use_one_torch_thread();
  for (const auto& [name, parameters] : kParameters) {
    for (const std::int64_t side : {1, 28, 64, 65, 97}) {
      ModelArgs args = args_for(side, 7, 8);
      args.input.channels = 1;
      const Model model = find_model(name).make(args);
      model.module->eval();  // a batch norm over one place and sample has nothing to learn from
      const Batch batch{.inputs = at::ones({1, 1, side, side})};
      EXPECT_EQ(model.logits(batch).sizes(), (std::vector<std::int64_t>{1, 7})) << name << side;
    }
  }
}

TEST(ImageModels, AWiderStemWidensAll) {
  for (const auto& [name, parameters] : kParameters) {
    const std::int64_t usual = name == "resnet50" ? 64 : 32;
    const auto count = [&](std::int64_t width) {
      return parameter_count(find_model(name).make(args_for(224, 1000, width)));
    };
    EXPECT_EQ(count(usual), parameters) << name;
    EXPECT_LT(count(usual / 2), parameters) << name;
    EXPECT_GT(count(usual + 8), parameters) << name;
  }
}

/// Of full size, so that it takes seconds.
TEST(ImageModels, AFewStepsLowerTheLossAndEveryParameterHasAGradient) {
  use_one_torch_thread();
  const Batch batch = made_up(6, 32);
  for (const auto& [name, parameters] : kParameters) {
    const Model model = find_model(name).make(args_for(32, 3));
    double first = 0;
    for (int step = 0; step < 4; ++step) {
      model.module->zero_grad();
      const at::Tensor loss = loss_of(model, batch);
      loss.backward();
      if (step == 0) first = loss.item<double>();
      const at::NoGradGuard no_grad;
      for (auto& item : model.module->named_parameters()) {
        const at::Tensor& gradient = item.value().grad();
        if (step == 0) {
          EXPECT_GT(gradient.abs().sum().item<double>(), 0) << name << " " << item.key();
        }
        item.value().sub_(gradient, 0.002);
      }
    }
    EXPECT_LT(loss_of(model, batch).item<double>(), 0.9 * first) << name;
  }
}

}  // namespace
}  // namespace gossamer
