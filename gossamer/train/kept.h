#pragma once
/// What one worker of a run keeps, written to a file and read from it; see docs/checkpoint.md.

#include <filesystem>

#include "gossamer/checkpoint/manifest.h"
#include "gossamer/checkpoint/safetensors.h"
#include "gossamer/recipe/recipe.h"
#include "gossamer/train/trainer.h"

namespace gossamer {

/// Writes this worker's model, optimizer state and what its pattern keeps into the temporary folder
/// of a checkpoint, as the worker of this place.
WorkerFile write_kept(const std::filesystem::path& temporary, int place, Trainer& trainer,
                      const Recipe& recipe);

/// Fills the trainer from such a file; its engine has yet to start. Throws IoError for one that
/// does not fit.
void take_kept(const SafetensorsFile& file, const Manifest& manifest, Trainer& trainer,
               const Recipe& recipe);

}  // namespace gossamer
