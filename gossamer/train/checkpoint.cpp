#include "gossamer/train/checkpoint.h"

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "gossamer/algo/pattern.h"
#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/index.h"
#include "gossamer/checkpoint/folder.h"
#include "gossamer/checkpoint/keys.h"
#include "gossamer/checkpoint/load.h"
#include "gossamer/checkpoint/save.h"
#include "gossamer/recipe/fields.h"
#include "gossamer/recipe/host_shape.h"
#include "gossamer/torch/tensors/tensor_types.h"
#include "gossamer/train/kept.h"
#include "gossamer/train/savers.h"

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
    if (!shapes_numbers || is_data_path(field.key) || field.key == "lost") continue;
    identity[std::string(field.key)] = to_json(field);
  }
  identity["content of the data"] = content;
  const MethodSpec method = method_of(recipe.algorithm, recipe.run.seed);
  if (update_of(method) == UpdateAt::backward) identity["layout"] = "completion";
  return identity;
}

/// The recipe of a run that has begun with these workers alone.
Recipe recipe_of(Recipe recipe, const std::vector<int>& ranks) {
  const HostShape shape = host_shape_of(recipe.cluster);
  HostShape left{std::vector<int>(at(shape.hosts()), 0)};
  for (const int rank : ranks) ++left.workers_per_host[at(shape.host_of(rank))];
  std::erase(left.workers_per_host, 0);
  set_hosts(recipe.cluster, left);
  return recipe;
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

/// Whoever commits in place of a lost rank 0 takes the folder, which that one has left.
void hold_folder(const TrainedRun& run) {
  if (run.lock == nullptr) return;
  if (!*run.lock) *run.lock = lock_run(run.out, run.job);
  run.lock->check();
}

/// One worker's part of one attempt, in steps that all do together.
class Save {
 public:
  Save(const TrainedRun& run, Trainer& trainer)
      : run_(run),
        trainer_(trainer),
        savers_(trainer.engine().collectives()),
        folder_(checkpoints_of(run.out)) {}

  /// What the disk had against it. Throws FewerAreLeft.
  std::string go_through() {
    std::string problem = begin();
    if (problem.empty()) problem = write();
    if (problem.empty()) problem = commit();
    return problem;
  }

  void abandon() const {
    if (savers_.commits() && !temporary_.empty()) abandon_checkpoint(temporary_);
  }

 private:
  void make_folder() {
    if (savers_.commits()) hold_folder(run_);
    temporary_ = begin_checkpoint(folder_, trainer_.engine().steps_done(), attempt_).temporary;
  }

  std::string begin() {
    const std::string problem = savers_.problem_of_all([&] {
      if (!savers_.commits()) return;
      attempt_ = unique_suffix();
      make_folder();
    });
    if (problem.empty()) attempt_ = savers_.gather(attempt_).front();
    return problem;
  }

  std::string write() {
    return savers_.problem_of_all([&] {
      make_folder();
      own_ = write_kept(temporary_, savers_.place(), trainer_, run_.recipe);
    });
  }

  std::string commit() {
    Manifest manifest = described(run_, trainer_, savers_.ranks());
    manifest.files = savers_.gather_files(own_);
    const std::string problem = savers_.problem_of_all([&] {
      if (!savers_.commits()) return;
      hold_folder(run_);
      commit_checkpoint(temporary_, folder_, std::move(manifest));
    });
    if (problem.empty() && savers_.commits()) prune(folder_, run_.recipe.run.keep);
    return problem;
  }

  const TrainedRun& run_;
  Trainer& trainer_;
  Savers savers_;
  const std::filesystem::path folder_;
  std::string attempt_;
  std::filesystem::path temporary_;
  WorkerFile own_;
};

std::string save_once(const TrainedRun& run, Trainer& trainer) {
  Save save(run, trainer);
  try {
    std::string problem = save.go_through();
    if (!problem.empty()) save.abandon();
    return problem;
  } catch (const FewerAreLeft&) {
    save.abandon();
    throw;
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

}  // namespace

Manifest described(const TrainedRun& run, Trainer& trainer, const std::vector<int>& ranks) {
  const torch::nn::Module& module = *trainer.model().module;
  Manifest manifest{.step = trainer.engine().steps_done(),
                    .workers = static_cast<int>(std::ssize(ranks)),
                    .optimizer = std::string(run.recipe.optimizer.optimizer->name),
                    .pattern = std::string(run.recipe.algorithm.pattern->name),
                    .run = run_identity(recipe_of(run.recipe, ranks), run.content)};
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

FolderLock lock_run(const std::filesystem::path& out, const std::string& job) {
  return FolderLock(out, "a run of gossamer train", "train", job);
}

std::string save_checkpoint(const TrainedRun& run, Trainer& trainer) {
  constexpr int kAttempts = 3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    try {
      return save_once(run, trainer);
    } catch (const FewerAreLeft&) {
      continue;
    }
  }
  return "workers were lost in every attempt to save";
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
  const Manifest own = described(run, trainer, trainer.engine().collectives().took_part());
  require_same_model(manifest, own.optimizer, own.model);
  TensorEngine& engine = trainer.tensors();
  const int rank = engine.engine().collectives().rank();
  take_kept(open_worker_file(checkpoint, manifest, rank), manifest, trainer, run.recipe);
  engine.start_at(manifest.step);
}

}  // namespace gossamer
