#pragma once
/// For tests of the command line: runs the program, and compares what it prints with tests/golden.
/// To renew those files after a wanted change: tools/golden.sh, then look at the difference.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#ifndef GOSSAMER_PROGRAM
#define GOSSAMER_PROGRAM "gossamer"  // the build says where it is
#endif

namespace gossamer::program_run {

namespace fs = std::filesystem;

struct Result {
  int code = -1;
  std::string out;
  std::string err;
};

inline std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Result run_program(const std::string& program, const std::string& arguments) {
  const fs::path errors =
      fs::temp_directory_path() / ("gossamer-cli-" + std::to_string(::getpid()));
  const std::string command = program + " " + arguments + " 2>" + errors.string();
  Result result;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    result.out.append(buffer.data(), n);
  }
  const int status = ::pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.err = content_of(errors);
  fs::remove(errors);
  return result;
}

inline Result run(const std::string& arguments) { return run_program(GOSSAMER_PROGRAM, arguments); }

/// A line of arguments, and how the one line of its complaint begins.
struct Complaint {
  const char* arguments;
  const char* beginning;
};

/// Each fails, says nothing on stdout, and one line on stderr.
inline void expect_complaints(std::span<const Complaint> cases) {
  for (const auto& [arguments, beginning] : cases) {
    const Result result = run(arguments);
    EXPECT_NE(result.code, 0) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_TRUE(result.err.starts_with(beginning)) << arguments << "\n" << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }
}

inline bool renewing() {
  const char* wish = std::getenv("GOSSAMER_GOLDEN");
  return wish != nullptr && std::string(wish) == "renew";
}

/// The golden text, after writing it where that is wished.
inline std::string golden(const std::string& name, const std::string& now) {
  const fs::path path = fs::path("tests/golden") / name;
  if (renewing()) std::ofstream(path, std::ios::binary) << now;
  EXPECT_TRUE(fs::exists(path)) << path << " is missing; run with GOSSAMER_GOLDEN=renew";
  return content_of(path);
}

}  // namespace gossamer::program_run
