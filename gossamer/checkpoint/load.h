#pragma once
/// Reading a checkpoint, and finding out whether it is what was written.

#include <filesystem>

#include "gossamer/checkpoint/manifest.h"
#include "gossamer/checkpoint/safetensors.h"

namespace gossamer {

/// As read_manifest(); the remedy names the newest earlier checkpoint that is complete.
Manifest read_checkpoint(const std::filesystem::path& checkpoint);

/// Reads every byte of a checkpoint and throws IoError when a file is missing, truncated or
/// altered: it names the file and the newest earlier checkpoint that is complete.
void verify_checkpoint(const std::filesystem::path& checkpoint);

/// Reads a worker's file once, and parses it only when length and checksum are the manifest's.
SafetensorsFile open_worker_file(const std::filesystem::path& checkpoint, const Manifest& manifest,
                                 int rank);

}  // namespace gossamer
