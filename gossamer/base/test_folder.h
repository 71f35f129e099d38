#pragma once
/// For tests: a folder of its own that is removed at the end, whole files as strings, and messages.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gossamer/base/disk.h"
#include "gossamer/base/errors.h"
#include "gossamer/base/test_errors.h"

namespace gossamer {

/// In memory where the system has such a folder: bringing files to a real disk takes most of a
/// test.
inline std::filesystem::path test_root() {
  const std::filesystem::path memory = "/dev/shm";
  const bool usable = std::getenv("TEST_TMPDIR") == nullptr && ::access(memory.c_str(), W_OK) == 0;
  return usable ? memory : std::filesystem::path(testing::TempDir());
}

class TestFolder {
 public:
  TestFolder() : path_(test_root() / ("gossamer-" + unique_suffix())) {
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::string get_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void put_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace gossamer
