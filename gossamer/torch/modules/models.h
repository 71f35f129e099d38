#pragma once
/// The models by name. A new one is a file in this folder and a row of the table.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "gossamer/base/dtype.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

/// What the samples look like; a data set says it.
struct InputShape {
  std::int64_t channels = 1;
  std::int64_t height = 28;
  std::int64_t width = 28;
  std::int64_t classes = 10;
  /// Tokens per sequence; 0 for images.
  std::int64_t context = 0;
};

/// 0 stands for the model's own default. Width: hidden units, channels of the first stage, or the
/// transformer's width. Layers: hidden layers, stages, or blocks.
struct ModelSize {
  std::int64_t width = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t hidden = 0;  ///< units of the layers between attention
};

struct ModelArgs {
  InputShape input;
  ModelSize size;
  /// The share of units dropped in training; none: what the model is usually trained with.
  std::optional<double> dropout = {};
  std::uint64_t seed = 1;
  DType dtype = DType::f32;
};

/// What a model reads. Masked tokens: those that are asked for are hidden, others come after them.
enum class InputKind { images, tokens, masked_tokens, pairs };

/// In words, for messages.
std::string_view describe(InputKind kind);

struct ModelKind {
  std::string_view name;
  std::string_view summary;
  InputKind input;
  Model (*make)(const ModelArgs&);
  std::span<const std::string_view> sizes;  ///< what of ModelArgs it takes: "width", "dropout", …
};

/// Throws std::invalid_argument for a size or dropout that the model would ignore.
void check_sizes(const ModelKind& kind, const ModelArgs& args);

std::span<const ModelKind> model_kinds();

/// Throws std::invalid_argument that lists the names when there is no such model.
const ModelKind& find_model(std::string_view name);

}  // namespace gossamer
