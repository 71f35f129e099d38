#include "gossamer/torch/modules/encoder_decoder.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cmath>
#include <limits>
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

void check(const EncoderDecoderOptions& o) {
  for (const std::int64_t size : {o.vocabulary, o.context, o.width, o.layers, o.heads}) {
    if (size > 0) continue;
    fail_argument({.place = "encoder_decoder",
                   .what = "every size must be positive",
                   .got = std::to_string(size),
                   .remedy = "see EncoderDecoderOptions for the defaults"});
  }
  if (o.width % o.heads == 0) return;
  fail_argument({.place = "encoder_decoder",
                 .what = "heads must divide the width",
                 .got = "width " + std::to_string(o.width) + ", heads " + std::to_string(o.heads),
                 .remedy = "choose the width as a multiple of the heads"});
}

/// Sequences [batch, length] as rows [batch·length, width], so that every linear map is one matrix
/// product.
struct Rows {
  at::Tensor x;
  std::int64_t batch = 0;
};

struct Linear : torch::nn::Module {
  Linear(std::int64_t inputs, std::int64_t outputs, const at::TensorOptions& type) {
    kernel = register_parameter("kernel", at::zeros({inputs, outputs}, type));
    bias = register_parameter("bias", at::zeros({outputs}, type));
  }

  at::Tensor forward(const at::Tensor& x) const { return at::addmm(bias, x, kernel); }

  at::Tensor kernel, bias;
};

/// What attention may look at: a mask [batch, 1, 1, keys] that is added to the scores, or nothing
/// behind the query's own position.
struct Sight {
  at::Tensor mask;
  bool is_causal = false;
};

struct Attention : torch::nn::Module {
  Attention(std::int64_t width, std::int64_t head_count, const at::TensorOptions& type)
      : heads(head_count) {
    const auto add = [&](const char* name) {
      return register_module(name, std::make_shared<Linear>(width, width, type));
    };
    query = add("query");
    key = add("key");
    value = add("value");
    out = add("out");
  }

  at::Tensor by_head(const at::Tensor& x, std::int64_t batch) const {
    return x.view({batch, -1, heads, x.size(1) / heads}).transpose(1, 2);
  }

  at::Tensor forward(const Rows& asking, const Rows& asked, const Sight& sight) const {
    const at::Tensor mixed = at::scaled_dot_product_attention(
        by_head(query->forward(asking.x), asking.batch),
        by_head(key->forward(asked.x), asked.batch), by_head(value->forward(asked.x), asked.batch),
        sight.mask.defined() ? std::optional(sight.mask) : std::nullopt, /*dropout_p=*/0.0,
        sight.is_causal);
    return out->forward(mixed.transpose(1, 2).reshape_as(asking.x));
  }

  std::int64_t heads;
  std::shared_ptr<Linear> query, key, value, out;
};

/// One layer of the encoder or, with attention to the source, of the decoder.
struct Layer : torch::nn::Module {
  Layer(const EncoderDecoderOptions& o, bool decodes, const at::TensorOptions& type) {
    const auto norm = [&](const char* name) {
      return register_module(name, std::make_shared<LayerNorm>(o.width, type));
    };
    const auto attention = [&](const char* name) {
      return register_module(name, std::make_shared<Attention>(o.width, o.heads, type));
    };
    self_norm = norm("self_norm");
    self_attention = attention("self_attention");
    if (decodes) {
      source_norm = norm("source_norm");
      source_attention = attention("source_attention");
    }
    hidden_norm = norm("hidden_norm");
    const std::int64_t units = o.hidden > 0 ? o.hidden : 2 * o.width;
    hidden_in = register_module("hidden_in", std::make_shared<Linear>(o.width, units, type));
    hidden_out = register_module("hidden_out", std::make_shared<Linear>(units, o.width, type));
  }

  void forward(Rows& rows, const Sight& self, const Rows& memory, const Sight& source,
               Dropout& drop) const {
    const Rows normed{self_norm->forward(rows.x), rows.batch};
    rows.x = rows.x + drop(self_attention->forward(normed, normed, self));
    if (source_attention) {
      const Rows asking{source_norm->forward(rows.x), rows.batch};
      rows.x = rows.x + drop(source_attention->forward(asking, memory, source));
    }
    const at::Tensor hidden = at::relu(hidden_in->forward(hidden_norm->forward(rows.x)));
    rows.x = rows.x + drop(hidden_out->forward(hidden));
  }

  std::shared_ptr<LayerNorm> self_norm, source_norm, hidden_norm;
  std::shared_ptr<Attention> self_attention, source_attention;
  std::shared_ptr<Linear> hidden_in, hidden_out;
};

struct EncoderDecoder : torch::nn::Module {
  explicit EncoderDecoder(const EncoderDecoderOptions& o) : context(o.context), rate(o.dropout) {
    const auto type = at::dtype(to_scalar_type(o.dtype));
    embedding = register_parameter("embedding", at::zeros({o.vocabulary, o.width}, type));
    positions = sinusoids(context, o.width).to(type);
    for (std::int64_t k = 0; k < o.layers; ++k) {
      const std::string number = std::to_string(k);
      encoder.push_back(
          register_module("encoder" + number, std::make_shared<Layer>(o, false, type)));
      decoder.push_back(
          register_module("decoder" + number, std::make_shared<Layer>(o, true, type)));
    }
    encoder_norm = register_module("encoder_norm", std::make_shared<LayerNorm>(o.width, type));
    decoder_norm = register_module("decoder_norm", std::make_shared<LayerNorm>(o.width, type));
  }

  Rows embed(const at::Tensor& pieces, Dropout& drop) const {
    const std::int64_t length = pieces.size(1);
    if (length > context) {
      fail_argument({.place = "encoder_decoder",
                     .what = "a sequence is at most " + std::to_string(context) + " pieces long",
                     .got = std::to_string(length),
                     .remedy = "shorten the batches or raise the model's context"});
    }
    const std::int64_t width = embedding.size(1);
    const double scale = std::sqrt(static_cast<double>(width));
    const at::Tensor x = at::embedding(embedding, pieces) * scale + positions.narrow(0, 0, length);
    return {drop(x.view({-1, width})), pieces.size(0)};
  }

  /// Hides what fills short sources up.
  Sight sight_of(const at::Tensor& sources) const {
    const at::Tensor hidden = sources.eq(kPadding).view({sources.size(0), 1, 1, sources.size(1)});
    const at::Tensor mask = at::zeros(hidden.sizes(), embedding.options().requires_grad(false));
    return {mask.masked_fill(hidden, -std::numeric_limits<double>::infinity())};
  }

  Rows encode(const at::Tensor& sources, Dropout& drop) const {
    Rows rows = embed(sources, drop);
    const Sight sight = sight_of(sources);
    for (const auto& layer : encoder) layer->forward(rows, sight, {}, {}, drop);
    return {encoder_norm->forward(rows.x), rows.batch};
  }

  at::Tensor decode(const at::Tensor& inputs, const Rows& memory, const at::Tensor& sources,
                    Dropout& drop) const {
    Rows rows = embed(inputs, drop);
    const Sight source = sight_of(sources);
    for (const auto& layer : decoder) {
      layer->forward(rows, {.is_causal = true}, memory, source, drop);
    }
    return decoder_norm->forward(rows.x);
  }

  at::Tensor logits(const Batch& batch) const {
    Dropout drop(is_training() ? rate : 0, batch.seed);
    const Rows memory = encode(batch.sources, drop);
    return at::mm(decode(batch.inputs, memory, batch.sources, drop), embedding.t());
  }

  std::int64_t context;
  double rate;
  std::vector<std::shared_ptr<Layer>> encoder, decoder;
  std::shared_ptr<LayerNorm> encoder_norm, decoder_norm;
  at::Tensor embedding, positions;
};

}  // namespace

Model make_encoder_decoder(const EncoderDecoderOptions& options, std::uint64_t seed) {
  check(options);
  auto module = std::make_shared<EncoderDecoder>(options);
  initialise(*module, seed, [](const std::string& name, const at::Tensor& parameter) {
    if (name == "embedding") return 1 / std::sqrt(static_cast<double>(parameter.size(1)));
    return std::sqrt(2.0 / static_cast<double>(parameter.size(0) + parameter.size(1)));
  });
  const auto* net = module.get();
  return {.module = module,
          .logits = [net](const Batch& batch) { return net->logits(batch); },
          .encode =
              [net](const at::Tensor& sources) {
                Dropout none(0, 0);
                return net->encode(sources, none).x;
              },
          .next =
              [net](const Batch& prefixes, const at::Tensor& memory) {
                Dropout none(0, 0);
                const at::Tensor states = net->decode(
                    prefixes.inputs, {memory, prefixes.sources.size(0)}, prefixes.sources, none);
                const at::Tensor last =
                    states.view({prefixes.inputs.size(0), -1, states.size(1)}).select(1, -1);
                return at::log_softmax(at::mm(last, net->embedding.t()), 1);
              }};
}

}  // namespace gossamer
