#include "gossamer/recipe/models.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "gossamer/base/test_errors.h"

namespace gossamer {
namespace {

TEST(ModelFacts, AnUnknownNameListsTheValidOnes) {
  EXPECT_EQ(find_model_facts("mlp").name, "mlp");
  const std::string said =
      message_of<std::invalid_argument>([] { find_model_facts("transfromer"); });
  EXPECT_NE(said.find("did you mean 'transformer'?"), std::string::npos) << said;
}

TEST(ModelFacts, TheUsualModelReadsTheData) {
  for (const InputKind kind :
       {InputKind::images, InputKind::tokens, InputKind::masked_tokens, InputKind::pairs}) {
    EXPECT_EQ(usual_model(kind).input, kind);
    check_reads(usual_model(kind), kind);
  }
}

TEST(ModelFacts, AModelOfOtherDataIsRefusedWithThoseThatFit) {
  const std::string said = message_of<std::invalid_argument>(
      [] { check_reads(find_model_facts("bert"), InputKind::tokens); });
  EXPECT_NE(said.find("choose transformer, or"), std::string::npos) << said;
}

TEST(ModelFacts, ASizeThatAModelLacksIsRefused) {
  for (const ModelFacts& model : model_facts()) {
    const auto takes = [&](std::string_view name) {
      return std::ranges::find(model.sizes, name) != model.sizes.end();
    };
    const auto refuses = [&](const ModelSize& size, std::optional<double> dropout = {}) {
      try {
        check_sizes(model, size, dropout);
        return false;
      } catch (const std::invalid_argument&) {
        return true;
      }
    };
    EXPECT_FALSE(refuses({})) << model.name;
    EXPECT_EQ(refuses({.width = 8}), !takes("width")) << model.name;
    EXPECT_EQ(refuses({.layers = 8}), !takes("layers")) << model.name;
    EXPECT_EQ(refuses({.heads = 8}), !takes("heads")) << model.name;
    EXPECT_EQ(refuses({.hidden = 8}), !takes("hidden")) << model.name;
    EXPECT_EQ(refuses({}, 0.5), !takes("dropout")) << model.name;
    EXPECT_TRUE(model.usual_dropout == 0 || takes("dropout")) << model.name;
  }
}

}  // namespace
}  // namespace gossamer
