#pragma once
/// What a checkpoint says about itself: manifest.json, and the names inside a checkpoints folder.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/disk.h"
#include "gossamer/base/json.h"

namespace gossamer {

/// One worker's file of a checkpoint.
struct WorkerFile {
  int rank = 0;
  int member = 0;  ///< who wrote it, of a job whose members change; else the rank
  std::string name;
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;

  bool operator==(const WorkerFile&) const = default;
};

/// A mean loss that all workers know of, for schedules that follow it. No number is one, too.
struct SavedLoss {
  std::int64_t step = 0;
  double loss = 0;

  bool operator==(const SavedLoss& other) const;
};

/// What manifest.json holds. `files` has one entry per worker, in the order of the ranks.
struct Manifest {
  std::int64_t step = 0;
  /// UTC, as 2025-01-31T12:00:00Z; empty: the time of the commit.
  std::string created;
  int workers = 0;
  /// Of the job's membership; 0 where it never changes.
  std::int64_t epoch = 0;
  /// The row of the optimizer table, or the name of another optimizer's class.
  std::string optimizer;
  std::string pattern;
  /// A line per tensor of the model; see model_line().
  std::vector<std::string> model;
  /// Of the optimizer's settings; 0: the files hold none.
  int groups = 0;
  std::vector<SavedLoss> losses;
  /// What must be the same at resume; the caller chooses the keys.
  Json run = Json::object();
  std::vector<WorkerFile> files;

  bool operator==(const Manifest&) const = default;
};

inline constexpr std::string_view kManifestName = "manifest.json";

/// "step-00000120". Throws std::invalid_argument for a negative step.
std::string checkpoint_name(std::int64_t step);

/// The step of a name as checkpoint_name() makes it; nothing for every other name.
std::optional<std::int64_t> checkpoint_step(std::string_view name);

/// "worker-00003.safetensors".
std::string worker_file_name(int rank);

/// What the manifest says of the file that worker `rank` has written.
WorkerFile worker_file(int rank, const FileDigest& digest);

/// Throws std::invalid_argument unless there is exactly one rightly named file per worker.
void check_manifest(const Manifest& manifest);

/// The text of manifest.json: JSON whose last line is the checksum of all the text before it.
std::string manifest_text(const Manifest& manifest);

/// CRC-32 of that text: two hosts have the same checkpoint when step and checksum are the same.
std::uint32_t manifest_checksum(const Manifest& manifest);

/// Reads and checks manifest.json of a checkpoint. Throws IoError when it is missing, not JSON, of
/// another version, altered, or of another step than the folder's name; `remedy` says what to do.
Manifest read_manifest(const std::filesystem::path& checkpoint,
                       const std::string& remedy = "use another checkpoint");

/// Throws std::invalid_argument that lists every key of `run` whose value is not the manifest's.
void require_same_run(const Manifest& manifest, const Json& run);

/// Throws std::invalid_argument with the first line that differs unless the manifest is of this
/// model and of an optimizer of this class. The order of the lines does not matter.
void require_same_model(const Manifest& manifest, std::string_view optimizer,
                        std::span<const std::string> model);

}  // namespace gossamer
