#include "gossamer/torch/modules/models.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/units.h"
#include "gossamer/torch/modules/efficientnet_b0.h"
#include "gossamer/torch/modules/encoder_decoder.h"
#include "gossamer/torch/modules/mlp.h"
#include "gossamer/torch/modules/mobilenet_v2.h"
#include "gossamer/torch/modules/residual_cnn.h"
#include "gossamer/torch/modules/resnet50.h"
#include "gossamer/torch/modules/softmax_regression.h"
#include "gossamer/torch/modules/transformer.h"

namespace gossamer {
namespace {

std::int64_t pixels(const InputShape& input) { return input.channels * input.height * input.width; }

void take(std::int64_t given, std::int64_t& option) {
  if (given != 0) option = given;
}

Model softmax_regression(const ModelArgs& args) {
  return make_softmax_regression(
      {.inputs = pixels(args.input), .classes = args.input.classes, .dtype = args.dtype});
}

Model mlp(const ModelArgs& args) {
  MlpOptions options{
      .inputs = pixels(args.input), .classes = args.input.classes, .dtype = args.dtype};
  take(args.size.width, options.hidden);
  take(args.size.layers, options.layers);
  return make_mlp(options, args.seed);
}

Model residual_cnn(const ModelArgs& args) {
  ResidualCnnOptions options{
      .channels = args.input.channels, .classes = args.input.classes, .dtype = args.dtype};
  take(args.size.width, options.width);
  take(args.size.layers, options.stages);
  return make_residual_cnn(options, args.seed);
}

/// A network for photographs, whose first layer says how wide it is.
template <class Options, Model (*make)(const Options&, std::uint64_t)>
Model photo_network(const ModelArgs& args) {
  Options options{.channels = args.input.channels,
                  .height = args.input.height,
                  .width = args.input.width,
                  .classes = args.input.classes,
                  .dtype = args.dtype};
  take(args.size.width, options.stem);
  return make(options, args.seed);
}

/// Sizes that are not given stay as they are.
Model transformer_like(TransformerOptions options, const ModelArgs& args) {
  options.vocabulary = args.input.classes;
  options.dropout = args.dropout.value_or(options.dropout);
  options.dtype = args.dtype;
  take(args.input.context, options.context);
  take(args.size.width, options.width);
  take(args.size.layers, options.layers);
  take(args.size.heads, options.heads);
  return make_transformer(options, args.seed);
}

Model transformer(const ModelArgs& args) { return transformer_like({}, args); }

Model bert(const ModelArgs& args) {
  return transformer_like({.is_causal = false, .dropout = 0.1}, args);
}

Model encoder_decoder(const ModelArgs& args) {
  EncoderDecoderOptions options{.vocabulary = args.input.classes, .dtype = args.dtype};
  options.dropout = args.dropout.value_or(options.dropout);
  take(args.input.context, options.context);
  take(args.size.width, options.width);
  take(args.size.layers, options.layers);
  take(args.size.heads, options.heads);
  take(args.size.hidden, options.hidden);
  return make_encoder_decoder(options, args.seed);
}

constexpr std::string_view kWidth[] = {"width"};
constexpr std::string_view kWidthAndLayers[] = {"width", "layers"};
constexpr std::string_view kOfTransformer[] = {"width", "layers", "heads", "dropout"};
constexpr std::string_view kOfEncoderDecoder[] = {"width", "layers", "heads", "hidden", "dropout"};

constexpr ModelKind kModels[] = {
    {"softmax_regression", "one linear layer, convex", InputKind::images, softmax_regression, {}},
    {"mlp", "fully connected layers with ReLU", InputKind::images, mlp, kWidthAndLayers},
    {"residual_cnn", "residual network with batch norm", InputKind::images, residual_cnn,
     kWidthAndLayers},
    {"resnet50", "residual network of 50 layers", InputKind::images,
     photo_network<Resnet50Options, make_resnet50>, kWidth},
    {"mobilenet_v2", "inverted residual blocks", InputKind::images,
     photo_network<MobileNetOptions, make_mobilenet_v2>, kWidth},
    {"efficientnet_b0", "the same with squeeze and excitation", InputKind::images,
     photo_network<MobileNetOptions, make_efficientnet_b0>, kWidth},
    {"transformer", "decoder-only language model", InputKind::tokens, transformer, kOfTransformer},
    {"bert", "the same that looks both ways", InputKind::masked_tokens, bert, kOfTransformer},
    {"encoder_decoder", "transformer that translates", InputKind::pairs, encoder_decoder,
     kOfEncoderDecoder},
};

/// What the sizes that a model lacks follow from.
std::string remedy_for(const ModelKind& kind, std::string_view size) {
  std::string names;
  for (std::string_view name : kind.sizes) names += (names.empty() ? "" : ", ") + std::string(name);
  const bool follows_width = size == "hidden" && kind.sizes.data() == std::data(kOfTransformer);
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

void check_sizes(const ModelKind& kind, const ModelArgs& args) {
  const ModelSize& size = args.size;
  const std::pair<std::string_view, double> given[] = {{"width", static_cast<double>(size.width)},
                                                       {"layers", static_cast<double>(size.layers)},
                                                       {"heads", static_cast<double>(size.heads)},
                                                       {"hidden", static_cast<double>(size.hidden)},
                                                       {"dropout", args.dropout.value_or(0)}};
  for (const auto& [name, value] : given) {
    if (value == 0 || std::ranges::find(kind.sizes, name) != kind.sizes.end()) continue;
    fail_argument({.place = "models",
                   .what = "model " + std::string(kind.name) + " has no " + std::string(name),
                   .got = std::string(name) + " = " + shortest(value),
                   .remedy = remedy_for(kind, name)});
  }
}

std::span<const ModelKind> model_kinds() { return kModels; }

const ModelKind& find_model(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ModelKind& kind : kModels) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  fail_unknown_name("models", "model", name, names);
}

}  // namespace gossamer
