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

std::filesystem::path folder_of_this_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

/// Replaces this process by gossamer-train, whose first argument is the command. Training needs
/// libtorch, which takes a second to load; so it is a program of its own, and all other commands
/// start in milliseconds.
int hand_over(int argc, char** argv) {
  std::string program = (folder_of_this_program() / "gossamer-train").string();
  if (!std::filesystem::exists(program)) {
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
  const bool is_built_here = std::filesystem::exists(own);
  std::string python = is_built_here ? own.lexically_normal().string() : "python3";
  std::string script = (packages / "gossamer_command.py").lexically_normal().string();
  std::vector<char*> arguments{python.data(), script.data()};
  arguments.insert(arguments.end(), argv, argv + argc);
  arguments.push_back(nullptr);
  ::execvp(python.c_str(), arguments.data());
  fail_io({.place = argv[0],
           .what = std::string("cannot start Python: ") + std::strerror(errno),
           .got = python,
           .remedy = "install Python 3.10 or newer with matplotlib and Jinja2"});
}

}  // namespace

int run_train(int argc, char** argv) { return hand_over(argc, argv); }

int run_demo(int argc, char** argv) { return hand_over(argc, argv); }

int run_probe(int argc, char** argv) { return hand_over(argc, argv); }

int run_translate(int argc, char** argv) { return hand_over(argc, argv); }

int run_report(int argc, char** argv) {
  // The command stands beside the package: in build/python of a build, else in site-packages.
  const std::filesystem::path here = folder_of_this_program();
  for (const std::filesystem::path& packages : {here / "../python", here / "../.."}) {
    if (std::filesystem::exists(packages / "gossamer_command.py")) {
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
