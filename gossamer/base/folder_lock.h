#pragma once
/// FolderLock: one job at a time in a folder.

#include <filesystem>
#include <string>
#include <string_view>

#include "gossamer/base/descriptor.h"

namespace gossamer {

/// Held until it goes, or until its process ends in whatever way; a fork does not hold it. The file
/// `.lock` in the folder says who has it, and stays. Where the file system has no locks (ENOLCK,
/// EOPNOTSUPP) nothing is held.
class FolderLock {
 public:
  FolderLock() = default;
  /// `who` is what others are told: what kind of job it is; host, process and time are added.
  /// Throws IoError where another job has the folder, with what that one says of itself, and where
  /// the file cannot be made. `place` is that of the message.
  FolderLock(const std::filesystem::path& folder, const std::string& who, std::string_view place);

  explicit operator bool() const { return static_cast<bool>(file_); }

 private:
  Descriptor file_;
};

}  // namespace gossamer
