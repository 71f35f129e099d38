#pragma once
/// Saves and loads the whole state of a training run: parameters, optimizer state and buffers of
/// every worker.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/folder_lock.h"
#include "gossamer/checkpoint/manifest.h"
#include "gossamer/recipe/recipe.h"
#include "gossamer/train/trainer.h"

namespace gossamer {

/// What a checkpoint is of.
struct TrainedRun {
  const std::filesystem::path& out;  ///< the run folder
  const Recipe& recipe;
  const std::string& content;  ///< of the data: Task::content
  FolderLock* lock = nullptr;  ///< of `out`, which may be somebody else's; null: none
  std::string job = {};        ///< as FolderLock has it
};

/// Of the run's folder; throws as FolderLock does.
FolderLock lock_run(const std::filesystem::path& out, const std::string& job);

/// Collective: all workers that are left write into `out`/checkpoints, the first of them commits.
/// Either the checkpoint is there as a whole afterwards, or the earlier ones are untouched and all
/// workers are told what the disk had against it. Old checkpoints that cannot be removed are a
/// warning. Empty: it is there.
std::string save_checkpoint(const TrainedRun& run, Trainer& trainer);

/// What a manifest has to say of the run where these ranks have saved, without the files.
Manifest described(const TrainedRun& run, Trainer& trainer, const std::vector<int>& ranks);

/// Whether there is a checkpoint in the run folder, which need not exist.
bool has_checkpoint(const std::filesystem::path& out);

/// The newest checkpoint in the run folder. Throws IoError where there is none and
/// std::invalid_argument where it is of another run, or of other data.
std::filesystem::path checkpoint_to_resume(const TrainedRun& run);

/// Collective: fills the trainer from the newest checkpoint and starts its engine there. What
/// follows is, bit for bit, what would have followed the save. Throws as checkpoint_to_resume()
/// does, and IoError for a damaged checkpoint.
void load_checkpoint(const TrainedRun& run, Trainer& trainer);

}  // namespace gossamer
