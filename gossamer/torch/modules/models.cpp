#include "gossamer/torch/modules/models.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "gossamer/base/errors.h"
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
  options.dtype = args.dtype;
  take(args.input.context, options.context);
  take(args.size.width, options.width);
  take(args.size.layers, options.layers);
  take(args.size.heads, options.heads);
  return make_transformer(options, args.seed);
}

double dropout_of(const ModelArgs& args, std::string_view model) {
  return args.dropout.value_or(find_model_facts(model).usual_dropout);
}

Model transformer(const ModelArgs& args) {
  return transformer_like({.dropout = dropout_of(args, "transformer")}, args);
}

Model bert(const ModelArgs& args) {
  return transformer_like({.is_causal = false, .dropout = dropout_of(args, "bert")}, args);
}

Model encoder_decoder(const ModelArgs& args) {
  EncoderDecoderOptions options{.vocabulary = args.input.classes,
                                .dropout = dropout_of(args, "encoder_decoder"),
                                .dtype = args.dtype};
  take(args.input.context, options.context);
  take(args.size.width, options.width);
  take(args.size.layers, options.layers);
  take(args.size.heads, options.heads);
  take(args.size.hidden, options.hidden);
  return make_encoder_decoder(options, args.seed);
}

struct Maker {
  std::string_view name;
  Model (*make)(const ModelArgs&);
};

/// By name of the facts' rows (recipe/models.cpp).
constexpr Maker kMakers[] = {
    {"softmax_regression", softmax_regression},
    {"mlp", mlp},
    {"residual_cnn", residual_cnn},
    {"resnet50", photo_network<Resnet50Options, make_resnet50>},
    {"mobilenet_v2", photo_network<MobileNetOptions, make_mobilenet_v2>},
    {"efficientnet_b0", photo_network<MobileNetOptions, make_efficientnet_b0>},
    {"transformer", transformer},
    {"bert", bert},
    {"encoder_decoder", encoder_decoder},
};

/// The rows of the facts with what makes them.
const std::vector<ModelKind>& table() {
  static const std::vector<ModelKind> rows = [] {
    std::vector<ModelKind> made;
    for (const ModelFacts& facts : model_facts()) {
      const auto maker = std::ranges::find(kMakers, facts.name, &Maker::name);
      GOSSAMER_ASSERT(maker != std::end(kMakers));
      made.push_back({facts, maker->make});
    }
    return made;
  }();
  return rows;
}

}  // namespace

std::span<const ModelKind> model_kinds() { return table(); }

const ModelKind& find_model(std::string_view name) {
  return *std::ranges::find(table(), find_model_facts(name).name, &ModelKind::name);
}

}  // namespace gossamer
