#include "gossamer/cli/picture/drawing.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <span>

#include "gossamer/base/outside_error.h"
#include "gossamer/cli/commands.h"
#include "gossamer/cli/python_program.h"

namespace gossamer {
namespace {

[[noreturn]] void fail(const std::string& place, const char* what, int error) {
  fail_outside({.place = place, .what = what, .got = std::strerror(error)});
}

/// A file in memory that holds the text. Unlike a pipe it never fills, and no reader can break it.
class TextInMemory {
 public:
  TextInMemory(const std::string& place, const std::string& text)
      : descriptor_(::memfd_create("figures", MFD_CLOEXEC)) {
    constexpr const char* kWhat = "cannot hand the figures to Python";
    if (descriptor_ < 0) fail(place, kWhat, errno);
    std::span<const char> left(text);
    while (!left.empty()) {
      const ::ssize_t count = ::write(descriptor_, left.data(), left.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        const int error = errno;
        ::close(descriptor_);
        fail(place, kWhat, error);
      }
      left = left.subspan(static_cast<std::size_t>(count));
    }
    ::lseek(descriptor_, 0, SEEK_SET);
  }
  ~TextInMemory() { ::close(descriptor_); }
  TextInMemory(const TextInMemory&) = delete;
  TextInMemory& operator=(const TextInMemory&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Starts the command with `input` for its stdin.
::pid_t start(const std::string& place, std::vector<std::string> command, int input) {
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv.front(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail_to_start_python(place, command.front(), error);
  return child;
}

int status_of(const std::string& place, ::pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail(place, "cannot learn how Python ended", errno);
  }
  return status;
}

}  // namespace

int draw(const Drawing& drawing) {
  const std::string& place = drawing.place;
  std::cout.flush();
  std::fflush(stdout);
  std::vector<std::string> command = python_command(place);
  command.insert(command.end(), {"charts", "-", "--place", place});
  command.insert(command.end(), drawing.arguments.begin(), drawing.arguments.end());
  // A name that is no UTF-8 is drawn with a mark for the bytes that are not.
  const TextInMemory text(place,
                          drawing.figures.dump(-1, ' ', false, Json::error_handler_t::replace));
  const int status = status_of(place, start(place, command, text.descriptor()));
  if (WIFEXITED(status) && WEXITSTATUS(status) <= kExitUsage) return WEXITSTATUS(status);
  fail_outside({.place = place,
                .what = "Python did not draw the pictures",
                .got = WIFSIGNALED(status) ? std::string("signal ") + ::strsignal(WTERMSIG(status))
                                           : "exit code " + std::to_string(WEXITSTATUS(status)),
                .remedy = "try it with less beside it, or take the numbers of --json"});
}

void check_place_of(const std::string& place, const std::string& what, const std::string& path) {
  const std::filesystem::path file(path);
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code error;
  const bool is_there = std::filesystem::exists(file, error);
  if (::access(is_there ? file.c_str() : folder.c_str(), W_OK) == 0) return;
  fail_outside({.place = place, .what = "cannot write " + what, .got = "'" + path + "'"});
}

}  // namespace gossamer
