#pragma once
/// What a checkpoint says about itself: manifest.json, and the names inside a checkpoints folder.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/disk.h"
#include "gossamer/base/json.h"

namespace gossamer {

/// One worker's file of a checkpoint.
struct WorkerFile {
  int rank = 0;
  std::string name;
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;

  bool operator==(const WorkerFile&) const = default;
};

/// What manifest.json holds. `files` has one entry per worker, in the order of the ranks.
struct Manifest {
  std::int64_t step = 0;
  int workers = 0;
  std::vector<WorkerFile> files;
  std::uint64_t seed = 0;
  /// What must be the same at resume; the caller chooses the keys.
  Json run = Json::object();
  /// UTC, as 2025-01-31T12:00:00Z; empty: the time of the commit.
  std::string created;

  bool operator==(const Manifest&) const = default;
};

inline constexpr std::string_view kManifestName = "manifest.json";

/// "step-00000120". Throws std::invalid_argument for a negative step.
std::string checkpoint_name(std::int64_t step);

/// The step of a name as checkpoint_name() makes it; nothing for every other name.
std::optional<std::int64_t> checkpoint_step(std::string_view name);

/// "worker-00003.safetensors".
std::string worker_file_name(int rank);

/// Throws std::invalid_argument unless there is exactly one rightly named file per worker.
void check_manifest(const Manifest& manifest);

/// The text of manifest.json: JSON whose last line is the checksum of all the text before it.
std::string manifest_text(const Manifest& manifest);

/// Reads and checks manifest.json of a checkpoint. Throws IoError when it is missing, not JSON, of
/// another version, altered, or of another step than the folder's name.
Manifest read_manifest(const std::filesystem::path& checkpoint);

/// Throws std::invalid_argument that lists every key of `run` whose value is not the manifest's.
void require_same_run(const Manifest& manifest, const Json& run);

}  // namespace gossamer
