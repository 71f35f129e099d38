#pragma once
/// MemoryFolder: where a checkpoint lies that travels to another worker instead of a disk.

#include <cstdint>
#include <filesystem>

#include "gossamer/base/descriptor.h"

namespace gossamer {

/// A folder of its own; gone with this object. It is in the folder that GOSSAMER_STATE_FOLDER
/// names, else in /dev/shm, else among the temporary files (TMPDIR): in the first that has room.
///
/// Note [Folders of killed processes]: a process may be killed while it has one. So each holds a
/// lock on its folder, and whoever makes one removes those of this user that nobody has locked.
/// That asks no process by its number: it may be one of another container. A folder counts from
/// some seconds after it was made on, since it is locked a moment later.
class MemoryFolder {
 public:
  /// `bytes` are to be written. Throws IoError, where no folder has room for them, too.
  explicit MemoryFolder(std::int64_t bytes = 0);
  ~MemoryFolder();
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Descriptor lock_;
};

}  // namespace gossamer
