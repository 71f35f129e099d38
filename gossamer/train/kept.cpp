#include "gossamer/train/kept.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/checkpoint/keys.h"
#include "gossamer/checkpoint/save.h"
#include "gossamer/torch/tensors/tensor_files.h"
#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {
namespace {

/// What a worker has, by key; see docs/checkpoint.md.
using Kept = std::vector<std::pair<std::string, at::Tensor>>;

/// The model's own tensors, by reference.
Kept model_of(const torch::nn::Module& module) {
  Kept kept;
  for (const auto& item : module.named_parameters()) {
    kept.emplace_back(parameter_key(item.key()), item.value().detach());
  }
  for (const auto& item : module.named_buffers()) {
    kept.emplace_back(buffer_key(item.key()), item.value());
  }
  return kept;
}

/// What optimizer and pattern keep, by reference.
Kept vectors_of(Trainer& trainer, const Recipe& recipe) {
  TensorEngine& engine = trainer.tensors();
  const Pattern& pattern = *recipe.algorithm.pattern;
  const std::span<const std::string_view> vectors = recipe.optimizer.optimizer->state;
  const std::span<const std::string_view> own = pattern.state;
  Kept kept;
  for (int i = 0; i < engine.count(); ++i) {
    const std::string& name = engine.name(i);
    for (std::size_t k = 0; k < vectors.size(); ++k) {
      kept.emplace_back(optimizer_key(name, vectors[k]),
                        trainer.optimizer_state(i, static_cast<int>(k)));
    }
    for (std::size_t k = 0; k < own.size(); ++k) {
      kept.emplace_back(pattern_key(pattern.name, own[k], name),
                        trainer.pattern_state(i, static_cast<int>(k)));
    }
  }
  return kept;
}

/// How often each tensor has been stepped, which is read from and written to the trainer.
Kept updates_of(Trainer& trainer) {
  Kept updates;
  for (int i = 0; i < trainer.tensors().count(); ++i) {
    updates.emplace_back(optimizer_key(trainer.tensors().name(i), kUpdates),
                         at::scalar_tensor(trainer.updates(i), at::kFloat));
  }
  return updates;
}

void fill(const SafetensorsFile& file, const std::string& key, const at::Tensor& tensor) {
  const at::Tensor read = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
  const TensorView wanted = view_of_tensor(key, read);
  const TensorView& found = file.at(key);
  if (found.dtype != wanted.dtype || found.shape != wanted.shape) {
    fail_io({.place = file.path().native(),
             .what = "tensor '" + key + "' is not of this model, which has " + wanted.dtype,
             .got = found.dtype,
             .remedy = "use a checkpoint of the same model and optimizer"});
  }
  std::memcpy(read.mutable_data_ptr(), found.data.data(), read.nbytes());
  tensor.copy_(read);
}

/// What stays zero, as before the first step, where a file does not have it.
enum class Absent { fault, zero };

void fill_all(const SafetensorsFile& file, const Kept& kept, Absent absent = Absent::fault) {
  for (const auto& [key, tensor] : kept) {
    if (absent == Absent::fault || file.find(key) != nullptr) fill(file, key, tensor);
  }
}

}  // namespace

WorkerFile write_kept(const std::filesystem::path& temporary, int place, Trainer& trainer,
                      const Recipe& recipe) {
  Kept kept = model_of(*trainer.model().module);
  for (auto& vector : vectors_of(trainer, recipe)) kept.push_back(std::move(vector));
  for (auto& updates : updates_of(trainer)) kept.push_back(std::move(updates));
  std::vector<TensorView> views;
  for (auto& [key, tensor] : kept) {
    tensor = tensor.cpu().contiguous();
    views.push_back(view_of_tensor(key, tensor));
  }
  return write_worker_file(temporary, place, views);
}

void take_kept(const SafetensorsFile& file, const Manifest& manifest, Trainer& trainer,
               const Recipe& recipe) {
  const at::NoGradGuard no_grad;
  TensorEngine& engine = trainer.tensors();
  fill_all(file, model_of(*trainer.model().module));
  engine.set_anchors();
  const Absent absent = manifest.run.empty() ? Absent::zero : Absent::fault;
  fill_all(file, vectors_of(trainer, recipe), absent);
  const Kept updates = updates_of(trainer);
  for (int i = 0; i < engine.count(); ++i) {
    const auto& [key, count] = updates[at(i)];
    // Torch counts for some optimizers only.
    const bool is_there = file.find(key) != nullptr;
    if (is_there) fill(file, key, count);
    trainer.set_updates(i, is_there ? std::llround(count.item<double>()) : manifest.step);
  }
  for (const auto& [step, loss] : manifest.losses) {
    engine.engine().agreed_losses().push_back({step, loss});
  }
}

}  // namespace gossamer
