#include "gossamer/torch/modules/transformer.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cmath>
#include <string>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/torch/modules/dropout.h"
#include "gossamer/torch/modules/initialise.h"
#include "gossamer/torch/modules/layer_norm.h"
#include "gossamer/torch/modules/sinusoids.h"
#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {
namespace {

constexpr double kSpread = 0.02;

void check(const TransformerOptions& o) {
  for (const std::int64_t size :
       {o.vocabulary, o.context, o.width, o.layers, o.heads, o.mlp_factor}) {
    if (size > 0) continue;
    fail_argument({.place = "transformer",
                   .what = "every size must be positive",
                   .got = std::to_string(size),
                   .remedy = "see TransformerOptions for the defaults"});
  }
  if (o.width % o.heads == 0) return;
  fail_argument({.place = "transformer",
                 .what = "heads must divide the width",
                 .got = "width " + std::to_string(o.width) + ", heads " + std::to_string(o.heads),
                 .remedy = "choose the width as a multiple of the heads"});
}

/// x is [batch·context, width] throughout, so that every linear map is one matrix product.
struct TransformerLayer : torch::nn::Module {
  TransformerLayer(const TransformerOptions& options, const at::TensorOptions& type)
      : heads(options.heads), is_causal(options.is_causal) {
    const std::int64_t width = options.width;
    const std::int64_t hidden = options.mlp_factor * width;
    attention_norm = register_module("attention_norm", std::make_shared<LayerNorm>(width, type));
    qkv = register_parameter("qkv", at::zeros({width, 3 * width}, type));
    attention_out = register_parameter("attention_out", at::zeros({width, width}, type));
    mlp_norm = register_module("mlp_norm", std::make_shared<LayerNorm>(width, type));
    mlp_in = register_parameter("mlp_in", at::zeros({width, hidden}, type));
    mlp_out = register_parameter("mlp_out", at::zeros({hidden, width}, type));
  }

  at::Tensor attend(const at::Tensor& x, std::int64_t batch) const {
    const std::int64_t width = x.size(1);
    const auto parts = at::mm(attention_norm->forward(x), qkv)
                           .view({batch, -1, 3, heads, width / heads})
                           .permute({2, 0, 3, 1, 4})
                           .unbind(0);
    const at::Tensor mixed =
        at::scaled_dot_product_attention(parts[0], parts[1], parts[2], /*attn_mask=*/{},
                                         /*dropout_p=*/0.0, is_causal);
    return at::mm(mixed.transpose(1, 2).reshape({-1, width}), attention_out);
  }

  at::Tensor forward(const at::Tensor& x, std::int64_t batch, Dropout& drop) const {
    const at::Tensor y = x + drop(attend(x, batch));
    return y + drop(at::mm(at::gelu(at::mm(mlp_norm->forward(y), mlp_in)), mlp_out));
  }

  std::int64_t heads;
  bool is_causal;
  std::shared_ptr<LayerNorm> attention_norm, mlp_norm;
  at::Tensor qkv, attention_out, mlp_in, mlp_out;
};

struct Transformer : torch::nn::Module {
  explicit Transformer(const TransformerOptions& o)
      : context(o.context), width(o.width), rate(o.dropout) {
    const auto type = at::dtype(to_scalar_type(o.dtype));
    embedding = register_parameter("embedding", at::zeros({o.vocabulary, width}, type));
    if (o.positions == Positions::learned) {
      positions = register_parameter("positions", at::zeros({context, width}, type));
    } else {
      // Scaled to the deviation of the embeddings they are added to.
      positions = (kSpread * std::sqrt(2.0) * sinusoids(context, width)).to(type);
    }
    for (std::int64_t layer = 0; layer < o.layers; ++layer) {
      layers.push_back(register_module("layer" + std::to_string(layer),
                                       std::make_shared<TransformerLayer>(o, type)));
    }
    norm = register_module("norm", std::make_shared<LayerNorm>(width, type));
    if (!o.tied_embedding) {
      output = register_parameter("output", at::zeros({width, o.vocabulary}, type));
    }
  }

  at::Tensor forward(const at::Tensor& tokens, std::uint64_t noise) const {
    const std::int64_t batch = tokens.size(0);
    const std::int64_t length = tokens.size(1);
    if (length > context) {
      fail_argument({.place = "transformer",
                     .what = "a sequence is at most " + std::to_string(context) + " tokens long",
                     .got = std::to_string(length),
                     .remedy = "shorten the batches or raise the model's context"});
    }
    Dropout drop(is_training() ? rate : 0, noise);
    at::Tensor x = drop((at::embedding(embedding, tokens) + positions.narrow(0, 0, length))
                            .view({batch * length, width}));
    for (const auto& layer : layers) x = layer->forward(x, batch, drop);
    return at::mm(norm->forward(x), output.defined() ? output : embedding.t());
  }

  std::int64_t context, width;
  double rate;
  std::vector<std::shared_ptr<TransformerLayer>> layers;
  std::shared_ptr<LayerNorm> norm;
  at::Tensor embedding, positions, output;
};

}  // namespace

Model make_transformer(const TransformerOptions& options, std::uint64_t seed) {
  check(options);
  auto module = std::make_shared<Transformer>(options);
  const double into_residual = kSpread / std::sqrt(2.0 * static_cast<double>(options.layers));
  initialise(*module, seed, [&](const std::string& name, const at::Tensor&) {
    return name.ends_with("_out") ? into_residual : kSpread;
  });
  return {.module = module, .logits = [net = module.get()](const Batch& b) {
            return net->forward(b.inputs, b.seed);
          }};
}

}  // namespace gossamer
