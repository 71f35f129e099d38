#include "gossamer/train/checkpoint.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/checkpoint/folder.h"
#include "gossamer/checkpoint/keys.h"
#include "gossamer/checkpoint/load.h"
#include "gossamer/checkpoint/save.h"
#include "gossamer/recipe/fields.h"
#include "gossamer/torch/tensors/tensor_files.h"
#include "gossamer/torch/tensors/tensor_types.h"

namespace gossamer {
namespace {

std::filesystem::path checkpoints_of(const std::filesystem::path& out) {
  return out / "checkpoints";
}

/// All fields that shape the numbers, and what the data contain; a run may be resumed with more
/// steps, other file options, and data that lie elsewhere.
Json run_identity(const Recipe& recipe, const std::string& content) {
  Recipe copy = recipe;
  Json identity = Json::object();
  for (const RecipeField& field : recipe_fields(copy)) {
    const bool shapes_numbers = field.section == "data" || field.section == "model" ||
                                field.section == "algorithm" || field.key == "optimizer" ||
                                field.key == "seed" || field.key == "hosts" ||
                                field.key == "per_host";
    if (!shapes_numbers || is_data_path(field.key)) continue;
    identity[std::string(field.key)] = to_json(field);
  }
  identity["content of the data"] = content;
  const MethodSpec method = method_of(recipe.algorithm, recipe.run.seed);
  if (update_of(method) == UpdateAt::backward) identity["layout"] = "completion";
  return identity;
}

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

/// Gives every worker what each wrote. Lengths and checksums are exact in double.
std::vector<WorkerFile> gather(Collectives& collectives, const WorkerFile& own) {
  const int n = collectives.workers();
  std::vector<double> values(at(2 * n), 0.0);
  values[at(2 * own.rank)] = static_cast<double>(own.bytes);
  values[at(2 * own.rank + 1)] = own.crc32;
  collectives.mean(values);
  std::vector<WorkerFile> files;
  for (int rank = 0; rank < n; ++rank) {
    const double bytes = values[at(2 * rank)] * n;
    const double crc32 = values[at(2 * rank + 1)] * n;
    files.push_back(worker_file(rank, {static_cast<std::uint64_t>(std::llround(bytes)),
                                       static_cast<std::uint32_t>(std::llround(crc32))}));
  }
  return files;
}

WorkerFile write_own(const std::filesystem::path& temporary, Trainer& trainer, Kept kept) {
  for (auto& updates : updates_of(trainer)) kept.push_back(std::move(updates));
  std::vector<TensorView> views;
  for (auto& [key, tensor] : kept) {
    tensor = tensor.cpu().contiguous();
    views.push_back(view_of_tensor(key, tensor));
  }
  return write_worker_file(temporary, trainer.engine().collectives().rank(), views);
}

/// What the manifest has to say of it, without the files.
Manifest described(const TrainedRun& run, Trainer& trainer) {
  const torch::nn::Module& module = *trainer.model().module;
  Manifest manifest{.step = trainer.engine().steps_done(),
                    .workers = trainer.engine().collectives().workers(),
                    .optimizer = std::string(run.recipe.optimizer.optimizer->name),
                    .pattern = std::string(run.recipe.algorithm.pattern->name),
                    .run = run_identity(run.recipe, run.content)};
  const auto add = [&](std::string_view kind, const std::string& name, const at::Tensor& tensor) {
    manifest.model.push_back(
        model_line(kind, name, tensor.sizes(), find_tensor_type(tensor.scalar_type())->torch));
  };
  for (const auto& item : module.named_parameters()) add("parameter", item.key(), item.value());
  for (const auto& item : module.named_buffers()) add("buffer", item.key(), item.value());
  for (const auto& [step, loss] : trainer.engine().agreed_losses()) {
    manifest.losses.push_back({step, loss});
  }
  return manifest;
}

/// What the disk has against a part of a save that every worker does: the complaint of the first of
/// them that has one; empty: none. Returns when all have done it.
template <class Work>
std::string problem_of_all(Collectives& collectives, const Work& work) {
  std::string own;
  try {
    work();
  } catch (const IoError& error) {
    own = error.what();
  }
  for (const std::string& problem : collectives.gather(own)) {
    if (!problem.empty()) return problem;
  }
  return "";
}

/// What is left is removed with the next save.
void prune(const std::filesystem::path& folder, int keep) {
  try {
    prune_checkpoints(folder, keep);
  } catch (const IoError& error) {
    std::fprintf(stderr, "gossamer: an old checkpoint is kept until the next save: %s\n",
                 error.what());
  }
}

/// What a run was told; a key that recipes did not have then is as it is without it.
Json saved_identity(const Manifest& manifest) {
  Recipe usual;
  Json identity = manifest.run;
  for (const RecipeField& field : recipe_fields(usual)) {
    const std::string key(field.key);
    if (!identity.contains(key)) identity[key] = to_json(field);
  }
  return identity;
}

/// Throws std::invalid_argument unless the checkpoint is of this run. One that Gossip.save has made
/// says nothing of the run: any of the same model can go on from it.
void check_run(const Manifest& manifest, const TrainedRun& run) {
  if (!manifest.run.empty()) {
    Manifest saved = manifest;
    saved.run = saved_identity(manifest);
    require_same_run(saved, run_identity(run.recipe, run.content));
  }
  const int workers = host_shape_of(run.recipe.cluster).workers();
  if (manifest.workers == workers) return;
  fail_argument({.place = "checkpoint " + checkpoint_name(manifest.step),
                 .what = "a run goes on with as many workers as were saved, " +
                         std::to_string(manifest.workers),
                 .got = std::to_string(workers),
                 .remedy = "give as many, or load it with Gossip.load, which takes the mean"});
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

std::string save_checkpoint(const TrainedRun& run, Trainer& trainer) {
  Collectives& collectives = trainer.engine().collectives();
  const bool commits = collectives.rank() == 0;
  const auto folder = checkpoints_of(run.out);
  std::string attempt;
  std::filesystem::path temporary;
  const auto begin = [&] {
    if (run.lock != nullptr) run.lock->check();
    temporary = begin_checkpoint(folder, trainer.engine().steps_done(), attempt).temporary;
  };
  std::string problem = problem_of_all(collectives, [&] {
    if (!commits) return;
    attempt = unique_suffix();
    begin();
  });
  if (!problem.empty()) return problem;
  attempt = collectives.gather(attempt).front();
  WorkerFile own{.rank = collectives.rank()};
  problem = problem_of_all(collectives, [&] {
    begin();
    Kept kept = model_of(*trainer.model().module);
    for (auto& vector : vectors_of(trainer, run.recipe)) kept.push_back(std::move(vector));
    own = write_own(temporary, trainer, std::move(kept));
  });
  if (!problem.empty()) {
    if (commits) abandon_checkpoint(temporary);
    return problem;
  }
  Manifest manifest = described(run, trainer);
  manifest.files = gather(collectives, own);
  problem = problem_of_all(collectives, [&] {
    if (!commits) return;
    if (run.lock != nullptr) run.lock->check();
    commit_checkpoint(temporary, folder, std::move(manifest));
  });
  if (problem.empty() && commits) prune(folder, run.recipe.run.keep);
  return problem;
}

bool has_checkpoint(const std::filesystem::path& out) {
  return latest_checkpoint(checkpoints_of(out)).has_value();
}

std::filesystem::path checkpoint_to_resume(const TrainedRun& run) {
  const auto checkpoint = latest_checkpoint(checkpoints_of(run.out));
  if (!checkpoint) {
    fail_io({.place = "train",
             .what = "no checkpoint in " + checkpoints_of(run.out).string(),
             .remedy = "begin the run again with --auto-resume, or in another folder"});
  }
  check_run(read_checkpoint(*checkpoint), run);
  return *checkpoint;
}

void load_checkpoint(const TrainedRun& run, Trainer& trainer) {
  const at::NoGradGuard no_grad;
  const auto checkpoint = checkpoint_to_resume(run);
  const Manifest manifest = read_checkpoint(checkpoint);
  const Manifest own = described(run, trainer);
  require_same_model(manifest, own.optimizer, own.model);
  TensorEngine& engine = trainer.tensors();
  const int rank = engine.engine().collectives().rank();
  const SafetensorsFile file = open_worker_file(checkpoint, manifest, rank);
  fill_all(file, model_of(*trainer.model().module));
  engine.set_anchors();
  const Absent absent = manifest.run.empty() ? Absent::zero : Absent::fault;
  fill_all(file, vectors_of(trainer, run.recipe), absent);
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
  engine.start_at(manifest.step);
}

}  // namespace gossamer
