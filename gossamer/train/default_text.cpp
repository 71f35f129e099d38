#include "gossamer/train/default_text.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "gossamer/base/errors.h"

extern char** environ;

namespace gossamer {
namespace {

/// Isolated (-I, -S): neither the working directory nor variables of the shell name a place that
/// modules are imported from.
constexpr const char* kQuestion[] = {
    "python3", "-I", "-S", "-c", "import os; print(os.path.dirname(os.__file__))", nullptr};

/// Starts Python, which writes to `out`; −1: it cannot be started.
pid_t start_python(int out) {
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return -1;
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t process = -1;
  auto* const* words = const_cast<char* const*>(kQuestion);  // as POSIX has it; it changes nothing
  const int failed = ::posix_spawnp(&process, kQuestion[0], &actions, nullptr, words, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? process : -1;
}

/// Up to the end, or as much as a path can have.
std::string all_from(int in) {
  std::string text;
  std::array<char, 4096> piece{};
  while (text.size() < piece.size()) {
    const ssize_t got = ::read(in, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

bool has_ended_well(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) return false;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// What Python says; empty: nothing.
std::string answer_of_python() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const auto [in, out] = ends;
  const pid_t process = start_python(out);
  ::close(out);
  std::string answer = process < 0 ? "" : all_from(in);
  ::close(in);
  const bool is_good = process >= 0 && has_ended_well(process);
  while (!answer.empty() && (answer.back() == '\n' || answer.back() == '\r')) answer.pop_back();
  return is_good ? answer : "";
}

}  // namespace

std::filesystem::path python_sources() {
  const std::string path = answer_of_python();
  if (path.empty()) {
    fail_io({.place = "train",
             .what = "no Python found, whose standard library is the default text",
             .remedy = "give a file or folder with --data"});
  }
  return path;
}

}  // namespace gossamer
