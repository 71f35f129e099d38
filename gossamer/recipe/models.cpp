#include "gossamer/recipe/models.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/choice.h"
#include "gossamer/base/units.h"

namespace gossamer {
namespace {

constexpr std::string_view kWidth[] = {"width"};
constexpr std::string_view kWidthAndLayers[] = {"width", "layers"};
constexpr std::string_view kOfTransformer[] = {"width", "layers", "heads", "dropout"};
constexpr std::string_view kOfEncoderDecoder[] = {"width", "layers", "heads", "hidden", "dropout"};

constexpr ModelFacts kModels[] = {
    {"softmax_regression", "one linear layer, convex", InputKind::images},
    {"mlp", "fully connected layers with ReLU", InputKind::images, kWidthAndLayers},
    {"residual_cnn", "residual network with batch norm", InputKind::images, kWidthAndLayers},
    {"resnet50", "residual network of 50 layers", InputKind::images, kWidth},
    {"mobilenet_v2", "inverted residual blocks", InputKind::images, kWidth},
    {"efficientnet_b0", "the same with squeeze and excitation", InputKind::images, kWidth},
    {"transformer", "decoder-only language model", InputKind::tokens, kOfTransformer},
    {"bert", "the same that looks both ways", InputKind::masked_tokens, kOfTransformer, 0.1},
    {"encoder_decoder", "transformer that translates", InputKind::pairs, kOfEncoderDecoder, 0.1},
};

/// What the sizes that a model lacks follow from.
std::string remedy_for(const ModelFacts& model, std::string_view size) {
  const std::string names = listed({model.sizes.begin(), model.sizes.end()}, ", ");
  const bool follows_width = size == "hidden" && model.sizes.data() == std::data(kOfTransformer);
  return "leave it out" +
         std::string(follows_width ? ": its hidden layers have 4 times its width" : "") + "; " +
         (names.empty() ? "it takes no sizes" : "it takes " + names);
}

}  // namespace

std::string_view describe(InputKind kind) {
  switch (kind) {
    case InputKind::images:
      return "images";
    case InputKind::tokens:
      return "tokens";
    case InputKind::masked_tokens:
      return "masked tokens";
    case InputKind::pairs:
      return "pairs of texts";
  }
  __builtin_unreachable();
}

std::span<const ModelFacts> model_facts() { return kModels; }

const ModelFacts& find_model_facts(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ModelFacts& model : kModels) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  fail_unknown_name("models", "model", name, names);
}

const ModelFacts& usual_model(InputKind kind) {
  switch (kind) {
    case InputKind::images:
      return find_model_facts("residual_cnn");
    case InputKind::tokens:
      return find_model_facts("transformer");
    case InputKind::masked_tokens:
      return find_model_facts("bert");
    case InputKind::pairs:
      return find_model_facts("encoder_decoder");
  }
  __builtin_unreachable();
}

void check_sizes(const ModelFacts& model, const ModelSize& size, std::optional<double> dropout) {
  const std::pair<std::string_view, double> given[] = {{"width", static_cast<double>(size.width)},
                                                       {"layers", static_cast<double>(size.layers)},
                                                       {"heads", static_cast<double>(size.heads)},
                                                       {"hidden", static_cast<double>(size.hidden)},
                                                       {"dropout", dropout.value_or(0)}};
  for (const auto& [name, value] : given) {
    if (value == 0 || std::ranges::find(model.sizes, name) != model.sizes.end()) continue;
    fail_argument({.place = "models",
                   .what = "model " + std::string(model.name) + " has no " + std::string(name),
                   .got = std::string(name) + " = " + shortest(value),
                   .remedy = remedy_for(model, name)});
  }
}

/// A causal model that is asked for masked tokens would learn little, and one that looks both ways
/// would only read off the next.
void check_reads(const ModelFacts& model, InputKind kind) {
  if (model.input == kind) return;
  std::vector<std::string_view> fitting;
  for (const ModelFacts& each : kModels) {
    if (each.input == kind) fitting.push_back(each.name);
  }
  std::string got(model.name);
  got += ", which reads ";
  got += describe(model.input);
  fail_argument({.place = "train",
                 .what = "the model must read what the data has, " + std::string(describe(kind)),
                 .got = got,
                 .remedy = "choose " + listed(fitting, ", ") + ", or another task or objective"});
}

}  // namespace gossamer
