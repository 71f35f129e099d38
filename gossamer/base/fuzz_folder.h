#pragma once
/// For fuzz targets of readers that take a path: a folder with what the input says.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "gossamer/base/fuzz.h"

namespace gossamer {

/// In memory where the system has such a folder and TMPDIR names no other; removed at the end.
class FuzzFolder {
 public:
  FuzzFolder() {
    const bool in_memory = std::getenv("TMPDIR") == nullptr && ::access("/dev/shm", W_OK) == 0;
    const std::filesystem::path root =
        in_memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string name = (root / "gossamer-fuzz-XXXXXX").native();
    fuzz_check(::mkdtemp(name.data()) != nullptr, "no folder " + name);
    path_ = name;
  }
  ~FuzzFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  FuzzFolder(const FuzzFolder&) = delete;
  FuzzFolder& operator=(const FuzzFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The path of a new file.
  std::filesystem::path put(const std::filesystem::path& name, std::string_view text) const {
    const std::filesystem::path path = path_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace gossamer
