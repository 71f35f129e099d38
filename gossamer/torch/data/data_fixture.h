#pragma once
/// What the tests of data share: a folder for files of theirs, and the messages of errors.

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "gossamer/base/errors.h"

namespace gossamer {

using Bytes = std::vector<std::uint8_t>;

/// A folder of its own that disappears with the test.
class DataFiles : public testing::Test {
 protected:
  DataFiles() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("gossamer_data_" + std::to_string(getpid()) + "_" + info->name());
    std::filesystem::create_directories(folder_);
  }
  ~DataFiles() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path write(const std::string& name, const Bytes& bytes) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  std::filesystem::path write_gz(const std::string& name, const Bytes& bytes) const {
    const std::filesystem::path path = folder_ / name;
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path;
  }

  std::filesystem::path folder_;
};

inline Bytes idx_bytes(const std::vector<int>& sizes, int values) {
  Bytes bytes{0, 0, 8, static_cast<std::uint8_t>(sizes.size())};
  for (const int size : sizes) {
    for (const int shift : {24, 16, 8, 0}) {
      bytes.push_back(static_cast<std::uint8_t>(size >> shift));
    }
  }
  for (int i = 0; i < values; ++i) bytes.push_back(static_cast<std::uint8_t>(i % 10));
  return bytes;
}

/// The message of the IoError that `call` throws.
inline std::string io_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const IoError& error) {
    return error.what();
  }
  return "no error";
}

inline void expect_names(const std::string& message, const std::string& file,
                         const std::string& what) {
  EXPECT_NE(message.find(file), std::string::npos) << message;
  EXPECT_NE(message.find(what), std::string::npos) << message;
}

}  // namespace gossamer
