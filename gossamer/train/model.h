#pragma once
/// The model that a recipe describes, and what an engine is told about it.

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
};
TrainModel make_train_model(const Recipe& recipe, const Task& task);

/// What the samples are.
struct ModelInput {
  InputKind kind = InputKind::images;
  InputShape shape;
};

/// The model of the section alone. Throws std::invalid_argument where it reads something else, or
/// would ignore a size.
Model make_bare_model(const ModelSection& section, const ModelInput& input, std::uint64_t seed);

/// Options of the engine for a recipe and its model.
TensorEngineOptions engine_options(const Recipe& recipe, const TrainModel& model);

/// One forward and backward on the worker's part of the step's batch; returns the loss.
double forward_backward(TrainModel& model, const Task& task, std::int64_t step, Shard shard);

}  // namespace gossamer
