#pragma once
/// FolderLock: one job at a time in a folder.

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "gossamer/base/descriptor.h"

namespace gossamer {

/// Held until it goes, or until its process ends in whatever way; a fork does not hold it. The file
/// `.lock` in the folder says who has it; one that is left by a process that was killed is no lock.
/// Where the file system has none (ENOLCK, EOPNOTSUPP), or has them for one host only, another job
/// takes the folder over, with a word of its own in the file: `check` then tells the former one.
class FolderLock {
 public:
  FolderLock() = default;
  ~FolderLock();
  FolderLock(FolderLock&& other) = default;
  FolderLock& operator=(FolderLock&& other) noexcept;
  /// `who` is what others are told: what kind of job it is; host, process and time are added.
  /// Throws IoError where another job has the folder, with what that one says of itself, and where
  /// the file cannot be made. `place` is that of the message. `job`: a word that the processes of
  /// one job have in common, any of which takes the folder over from another one; empty: nobody.
  FolderLock(const std::filesystem::path& folder, const std::string& who, std::string_view place,
             const std::string& job = "");

  explicit operator bool() const { return static_cast<bool>(file_); }
  /// To be called before anything in the folder is replaced. Throws IoError where another job has
  /// taken it over, with what that one says of itself. Another process of this job may.
  void check() const;

 private:
  std::filesystem::path path_;
  std::string place_;
  std::string job_;    ///< what the word of each process of this job begins with, if anything
  std::string owner_;  ///< the word that nobody else has
  pid_t process_ = 0;  ///< that made it
  Descriptor file_;
};

}  // namespace gossamer
