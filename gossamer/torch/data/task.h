#pragma once
/// Data sets as a training loop sees them: batches by step and worker.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gossamer/data/augment.h"
#include "gossamer/data/sharding.h"
#include "gossamer/data/vocabulary.h"
#include "gossamer/recipe/tasks.h"
#include "gossamer/torch/data/batch_list.h"
#include "gossamer/torch/modules/model.h"
#include "gossamer/torch/modules/models.h"

namespace gossamer {

/// All functions are pure and may be called from many threads at once.
struct Task {
  InputKind kind = InputKind::images;
  InputShape input;
  /// The worker's part of the global batch of this step.
  std::function<Batch(std::int64_t step, Shard shard)> training_batch;
  /// Always the same, for all workers.
  BatchList validation;
  /// Global batches until the training data has been seen about once.
  std::int64_t steps_per_epoch = 0;
  /// One line for the log: what was read and how it was split.
  std::string description;
  /// What was read, by its content alone: see Content::text().
  std::string content = {};
  /// Of tasks whose classes are pieces of text.
  std::optional<Vocabulary> vocabulary = {};
};

struct TaskArgs {
  /// Images: the folder of a set, see image_formats(). Text: a file or a folder. Translation: the
  /// file of the source language.
  std::filesystem::path path;
  /// Images: which part of the set to train on ("train", "t10k", "test"); empty takes what is
  /// there.
  std::string part = "";
  /// Samples; translation: pieces, padding included.
  std::int64_t global_batch = 64;
  std::uint64_t seed = 1;
  double validation_fraction = 0.1;
  /// Samples (images or windows) to validate on, at most, and in one batch.
  std::int64_t validation_samples = 1024;
  std::int64_t validation_batch = 128;
  /// Images: see ImageBatchPlan.
  int pieces_per_worker = 0;
  /// Images: height and width of all; 0: as they are. See set_image_size().
  std::int64_t image_size = 0;
  Augmentation augmentation = {};
  /// Images in files: the steps whose batches are decoded ahead. See ReadAhead.
  int read_ahead = 1;
  /// Text: tokens per window, and what to read of a folder.
  std::int64_t context = 64;
  std::vector<std::string> suffixes = {};
  std::int64_t max_bytes = std::int64_t{64} << 20;
  /// Text: what is predicted, and which share of the tokens is asked for where they are masked.
  Objective objective = Objective::next;
  double mask_share = 0.15;
  /// Translation: the file of the target language; what to validate on instead of a fraction.
  /// `context` is the longest pair that is trained on, in pieces.
  std::filesystem::path target = {};
  std::filesystem::path validation = {};
  std::filesystem::path validation_target = {};
  /// Text and translation: the number of pieces to learn, or a SentencePiece model with them. 0 is
  /// the task's usual: bytes for text, 4000 pieces for translation.
  std::int64_t vocabulary = 0;
  std::filesystem::path vocabulary_file = {};
  Trust vocabulary_trust = Trust::sealed;
};

/// Reads the data. Throws std::invalid_argument for arguments out of range, and IoError.
Task open_task(TaskKind kind, const TaskArgs& args);

}  // namespace gossamer
