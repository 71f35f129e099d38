#pragma once
/// The table of models without their arithmetic, which torch/modules adds: what a model reads, and
/// which sizes it takes.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace gossamer {

/// What a model reads. Masked tokens: those that are asked for are hidden, others come after them.
enum class InputKind { images, tokens, masked_tokens, pairs };

/// In words, for messages.
std::string_view describe(InputKind kind);

/// 0 stands for the model's own default. Width: hidden units, channels of the first stage, or the
/// transformer's width. Layers: hidden layers, stages, or blocks.
struct ModelSize {
  std::int64_t width = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t hidden = 0;  ///< units of the layers between attention
};

struct ModelFacts {
  std::string_view name;
  std::string_view summary;
  InputKind input = InputKind::images;
  std::span<const std::string_view> sizes = {};  ///< what it takes: "width", "dropout", …
  double usual_dropout = 0;                      ///< the share of units dropped in training
};

std::span<const ModelFacts> model_facts();

/// Throws std::invalid_argument that lists the names where there is no such model.
const ModelFacts& find_model_facts(std::string_view name);

/// The model that is trained on such data where none is named.
const ModelFacts& usual_model(InputKind kind);

/// Throws std::invalid_argument for a size or dropout that the model would ignore.
void check_sizes(const ModelFacts& model, const ModelSize& size, std::optional<double> dropout);

/// Throws std::invalid_argument where the model reads something else, naming those that fit.
void check_reads(const ModelFacts& model, InputKind kind);

}  // namespace gossamer
