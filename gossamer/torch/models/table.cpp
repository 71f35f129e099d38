#include "gossamer/torch/models/table.h"

#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/torch/models/efficientnet_b0.h"
#include "gossamer/torch/models/encoder_decoder.h"
#include "gossamer/torch/models/mlp.h"
#include "gossamer/torch/models/mobilenet_v2.h"
#include "gossamer/torch/models/residual_cnn.h"
#include "gossamer/torch/models/resnet50.h"
#include "gossamer/torch/models/softmax_regression.h"
#include "gossamer/torch/models/transformer.h"

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

constexpr ModelKind kModels[] = {
    {"softmax_regression", "one linear layer, convex", InputKind::images, softmax_regression},
    {"mlp", "fully connected layers with ReLU", InputKind::images, mlp},
    {"residual_cnn", "residual network with batch norm", InputKind::images, residual_cnn},
    {"resnet50", "residual network of 50 layers", InputKind::images,
     photo_network<Resnet50Options, make_resnet50>},
    {"mobilenet_v2", "inverted residual blocks", InputKind::images,
     photo_network<MobileNetOptions, make_mobilenet_v2>},
    {"efficientnet_b0", "the same with squeeze and excitation", InputKind::images,
     photo_network<MobileNetOptions, make_efficientnet_b0>},
    {"transformer", "decoder-only language model", InputKind::tokens, transformer},
    {"bert", "the same that looks both ways", InputKind::masked_tokens, bert},
    {"encoder_decoder", "transformer that translates", InputKind::pairs, encoder_decoder},
};

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
