#pragma once
/// For tests and fuzz targets: a folder of its own that is removed at the end.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gossamer {

/// In memory where the system has such a folder and neither TMPDIR nor TEST_TMPDIR names another:
/// bringing files to a real disk takes most of a test.
inline std::filesystem::path scratch_root() {
  for (const char* name : {"TEST_TMPDIR", "TMPDIR"}) {
    if (const char* folder = std::getenv(name)) return folder;
  }
  const bool in_memory = ::access("/dev/shm", W_OK) == 0;
  return in_memory ? "/dev/shm" : std::filesystem::temp_directory_path();
}

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (scratch_root() / "gossamer-XXXXXX").native();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder " + name);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }
  /// The path of a new file.
  std::filesystem::path put(const std::filesystem::path& name, std::string_view text) const {
    const std::filesystem::path path = path_ / name;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    return path;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace gossamer
