#pragma once
/// The model that a recipe describes, and what an engine is told about it.

#include <c10/core/Device.h>

#include <cstdint>

#include "gossamer/recipe/recipe.h"
#include "gossamer/torch/data/task.h"
#include "gossamer/torch/modules/models.h"
#include "gossamer/torch/tensors/module_tensors.h"
#include "gossamer/torch/tensors/tensor_engine.h"

namespace gossamer {

/// A model with what an engine is to mix of it, in buckets of this layout.
struct TrainModel {
  Model model;
  ModuleTensors tensors;
  LayoutOptions layout;
  double label_smoothing = 0;
  c10::Device device{c10::kCPU};  ///< where it is
};

/// For a worker, by its place among those of its host: the recipe's device may depend on that.
TrainModel make_train_model(const Recipe& recipe, const Task& task, int local_rank = 0);

/// What the samples are.
struct ModelInput {
  InputKind kind = InputKind::images;
  InputShape shape;
};

/// The model of the section alone. Throws std::invalid_argument where it reads something else, or
/// would ignore a size.
Model make_bare_model(const ModelSection& section, const ModelInput& input, std::uint64_t seed);

/// Options of the engine for a recipe and its model in CPU memory.
TensorEngineOptions engine_options(const Recipe& recipe, const TrainModel& model);

}  // namespace gossamer
