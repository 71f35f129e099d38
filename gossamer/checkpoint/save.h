#pragma once
/// Saving a checkpoint: a folder with one file per worker that appears whole or not at all.
///
/// Note [Whole or not at all]: a save, by all workers of a run:
///   1. begin_checkpoint()    the lowest worker of each host, all with the same `attempt`;
///                            where all share a disk, one worker is enough
///   2. write_worker_file()   every worker, its own file, when all have done 1
///   3. commit_checkpoint()   those to whom step 1 said so, when all have done 2, with what step 2
///                            returned on all workers
///   4. prune_checkpoints()   the same, when all have done 3
/// Step 1 decides by mkdir, which one of several gets: there is one who commits on each file
/// system, be it shared by all, by some or by none. Whoever fails tells the others before they go
/// on. So there is at any time, on every file system, a checkpoint that all of them have.
/// The format and the guarantees are in docs/checkpoint.md.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "gossamer/checkpoint/manifest.h"
#include "gossamer/checkpoint/safetensors.h"

namespace gossamer {

/// Where a checkpoint is made, "step-N.tmp-ATTEMPT" in `folder`. An attempt is a word that no other
/// save has, such as unique_suffix(): up to 64 letters, digits, '-' and '_'.
std::filesystem::path temporary_checkpoint(const std::filesystem::path& folder, std::int64_t step,
                                           std::string_view attempt);

/// What a worker that has begun a save knows.
struct BegunCheckpoint {
  std::filesystem::path temporary;
  bool commits = false;  ///< this worker is to commit what is on this file system
};

/// Makes `folder` when needed, removes what interrupted saves left in it, and makes the temporary
/// folder. Only one save may be under way in a folder.
BegunCheckpoint begin_checkpoint(const std::filesystem::path& folder, std::int64_t step,
                                 std::string_view attempt);

/// Writes one worker's tensors into the temporary folder and brings them to the disk.
WorkerFile write_worker_file(const std::filesystem::path& temporary, int rank,
                             std::span<const TensorView> tensors,
                             const TensorMetadata& metadata = {});

/// Turns the temporary folder into the checkpoint of `manifest.step`, replacing one of the same
/// step, points `latest` to it and returns its path. Files of the ranks in `here` must be there,
/// and those of the others where this file system has them; without ranks, all. When it throws
/// IoError, `latest` names what it named before, and the temporary folder is removed where
/// possible.
std::filesystem::path commit_checkpoint(const std::filesystem::path& temporary,
                                        const std::filesystem::path& folder, Manifest manifest,
                                        std::span<const int> here = {});

/// Removes the temporary folder of a save that will not be committed. Does not throw.
void abandon_checkpoint(const std::filesystem::path& temporary) noexcept;

}  // namespace gossamer
