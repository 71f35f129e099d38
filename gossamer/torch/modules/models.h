#pragma once
/// The models by name. A new one is a file in this folder, a row of recipe/models.cpp and one here.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "gossamer/base/dtype.h"
#include "gossamer/recipe/models.h"
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

struct ModelArgs {
  InputShape input;
  ModelSize size;
  /// The share of units dropped in training; none: what the model is usually trained with.
  std::optional<double> dropout = {};
  std::uint64_t seed = 1;
  DType dtype = DType::f32;
};

/// A model of the table with what makes it.
struct ModelKind : ModelFacts {
  Model (*make)(const ModelArgs&) = nullptr;
};

std::span<const ModelKind> model_kinds();

/// Throws std::invalid_argument that lists the names when there is no such model.
const ModelKind& find_model(std::string_view name);

}  // namespace gossamer
