#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/cli/commands.h"

namespace gossamer {
namespace {

std::filesystem::path folder_of_this_program(const char* command) {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    fail_io({.place = command,
             .what = "cannot find this program's own folder in /proc",
             .got = error.message(),
             .remedy = "mount /proc"});
  }
  return program.parent_path();
}

/// What the system does not let us see counts as there: its use then says why it cannot be used.
bool may_be_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) || error;
}

/// Replaces this process by gossamer-train, whose first argument is the command. Training needs
/// libtorch, which takes a second to load; so it is a program of its own, and all other commands
/// start in milliseconds.
int hand_over(int argc, char** argv) {
  std::string program = (folder_of_this_program(argv[0]) / "gossamer-train").string();
  if (!may_be_there(program)) {
    fail_argument({.place = argv[0],
                   .what = "this build is without libtorch and cannot train: no such program",
                   .got = program,
                   .remedy = "build it with `cmake --preset release && cmake --build build`"});
  }
  std::vector<char*> arguments{program.data()};
  arguments.insert(arguments.end(), argv, argv + argc);
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  fail_io({.place = argv[0],
           .what = std::string("cannot start the program: ") + std::strerror(errno),
           .got = program});
}

/// Replaces this process by Python with the command that stands in the folder `packages`: that of
/// the project's environment where this program was built there, else the shell's.
int run_python(const std::filesystem::path& packages, int argc, char** argv) {
  const std::filesystem::path own = packages / "../../.venv/bin/python3";
  const bool is_built_here = may_be_there(own);
  std::string python = is_built_here ? own.lexically_normal().string() : "python3";
  std::string script = (packages / "gossamer_command.py").lexically_normal().string();
  std::vector<char*> arguments{python.data(), script.data()};
  arguments.insert(arguments.end(), argv, argv + argc);
  arguments.push_back(nullptr);
  ::execvp(python.c_str(), arguments.data());
  const int error = errno;
  fail_io({.place = argv[0],
           .what = std::string("cannot start Python: ") + std::strerror(error),
           .got = python,
           .remedy = error == EACCES
                         ? "let this user read and enter all folders on the way to it, and to the "
                           "Python that it is a link to; or run python3 -m gossamer " +
                               std::string(argv[0]) + " with a Python of this user's"
                         : "install Python 3.10 or newer with matplotlib and Jinja2"});
}

}  // namespace

int run_train(int argc, char** argv) { return hand_over(argc, argv); }

int run_demo(int argc, char** argv) { return hand_over(argc, argv); }

int run_probe(int argc, char** argv) { return hand_over(argc, argv); }

int run_translate(int argc, char** argv) { return hand_over(argc, argv); }

int run_report(int argc, char** argv) {
  // The command stands beside the package: in build/python of a build, else in site-packages.
  const std::filesystem::path here = folder_of_this_program(argv[0]);
  for (const std::filesystem::path& packages : {here / "../python", here / "../.."}) {
    if (may_be_there(packages / "gossamer_command.py")) {
      return run_python(packages, argc, argv);
    }
  }
  fail_argument(
      {.place = argv[0],
       .what = "the Python package is not beside this program",
       .got = here.string(),
       .remedy = "install it as docs/install.md says, then `python3 -m gossamer report`"});
}

}  // namespace gossamer
