#pragma once
/// What the tests of data share: a folder for files of theirs, and the messages of errors.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/base/gzip.h"
#include "gossamer/base/rng.h"
#include "gossamer/base/scratch_folder.h"
#include "gossamer/base/test_errors.h"
#include "gossamer/data/parallel_text.h"

namespace gossamer {

using Bytes = std::vector<std::uint8_t>;

/// With a folder of its own that disappears with the test.
class DataFiles : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const Bytes& bytes) const {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    return scratch_.put(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  std::filesystem::path write_gz(const std::string& name, const Bytes& bytes) const {
    return scratch_.put(name, gzipped({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  std::filesystem::path write_lines(const std::string& name, const std::vector<std::string>& lines,
                                    std::string_view end = "\n") const {
    std::string text;
    for (const std::string& line : lines) text.append(line).append(end);
    return scratch_.put(name, text);
  }

  ScratchFolder scratch_;
  const std::filesystem::path folder_ = scratch_.path();
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
inline std::string io_error(const std::function<void()>& call) { return message_of<IoError>(call); }

/// Whether the message says both which file and what about it.
inline void expect_names(const std::string& message, const std::string& file,
                         const std::string& what) {
  EXPECT_NE(message.find(file), std::string::npos) << message;
  EXPECT_NE(message.find(what), std::string::npos) << message;
}

/// A tiny language whose translation spells every word backwards.
inline ParallelText spelled_backwards(int lines) {
  const std::vector<std::string> words = {"one", "two", "red", "blue", "dog", "house", "runs"};
  ParallelText text;
  Rng rng(5);
  for (int i = 0; i < lines; ++i) {
    std::string source;
    std::string target;
    const std::uint64_t length = 2 + rng.below(9);
    for (std::uint64_t k = 0; k < length; ++k) {
      const std::string& word = words[rng.below(words.size())];
      if (k > 0) source.push_back(' ');
      if (k > 0) target.push_back(' ');
      source += word;
      target.append(word.rbegin(), word.rend());
    }
    text.sources.push_back(source);
    text.targets.push_back(target);
  }
  return text;
}

}  // namespace gossamer
