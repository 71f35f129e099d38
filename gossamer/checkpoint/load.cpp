#include "gossamer/checkpoint/load.h"

#include <string>
#include <system_error>
#include <utility>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/checkpoint/folder.h"

namespace gossamer {
namespace {

namespace fs = std::filesystem;

/// Throws unless the file is as the manifest says. The search for a remedy runs only on a fault.
void check_digest(const fs::path& checkpoint, const WorkerFile& file, const FileDigest& digest) {
  if (digest == FileDigest{file.bytes, file.crc32}) return;
  const fs::path path = checkpoint / file.name;
  std::string what = "is altered: its checksum is not the manifest's";
  std::string got;
  if (digest.bytes != file.bytes) {
    what = digest.bytes < file.bytes ? "is truncated" : "is longer than when it was written";
    got = std::to_string(digest.bytes) + " of " + std::to_string(file.bytes) + " bytes";
  }
  fail_io({path.native(), what, got, earlier_checkpoint(checkpoint)});
}

/// Throws when the file is missing or not as long as the manifest says.
void check_length(const fs::path& checkpoint, const WorkerFile& file) {
  const fs::path path = checkpoint / file.name;
  if (!is_there(path)) {
    fail_io({path.native(),
             "the file of worker " + std::to_string(file.rank) + " is missing",
             {},
             "copy it from the host that wrote it, or " + earlier_checkpoint(checkpoint)});
  }
  std::error_code error;  // of what is no regular file: who reads it says so
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (!error && bytes != file.bytes) check_digest(checkpoint, file, {bytes, file.crc32});
}

}  // namespace

Manifest read_checkpoint(const fs::path& checkpoint) {
  try {
    return read_manifest(checkpoint);
  } catch (const IoError&) {
    return read_manifest(checkpoint, earlier_checkpoint(checkpoint));  // to fail with a remedy
  }
}

void verify_checkpoint(const fs::path& checkpoint) {
  for (const WorkerFile& file : read_checkpoint(checkpoint).files) {
    check_length(checkpoint, file);
    check_digest(checkpoint, file, digest_file(checkpoint / file.name));
  }
}

SafetensorsFile open_worker_file(const fs::path& checkpoint, const Manifest& manifest, int rank) {
  if (rank < 0 || rank >= manifest.workers) {
    fail_argument({"checkpoint", "the checkpoint has no such worker", std::to_string(rank),
                   "it has " + std::to_string(manifest.workers)});
  }
  const WorkerFile& file = manifest.files[static_cast<std::size_t>(rank)];
  const fs::path path = checkpoint / file.name;
  check_length(checkpoint, file);
  FileBytes bytes = read_file(path);
  check_digest(checkpoint, file, {bytes.size, crc32_of(bytes.span())});
  return SafetensorsFile(path, std::move(bytes));
}

}  // namespace gossamer
