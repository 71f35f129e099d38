#include "gossamer/cli/python_program.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "gossamer/base/errors.h"
#include "gossamer/base/outside_error.h"

namespace gossamer {

namespace fs = std::filesystem;

fs::path folder_of_this_program(const std::string& place) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) {
    fail_outside({.place = place,
                  .what = "cannot find this program's own folder in /proc",
                  .got = error.message(),
                  .remedy = "mount /proc"});
  }
  return program.parent_path();
}

bool may_be_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) || error;
}

bool is_of_package() { return std::getenv("GOSSAMER_PYTHON") != nullptr; }

std::string program_as_typed() { return is_of_package() ? "gossamer" : "build/bin/gossamer"; }

fs::path training_program(const std::string& place) {
  const char* named = std::getenv("GOSSAMER_TRAIN");
  return named != nullptr ? fs::path(named) : folder_of_this_program(place) / "gossamer-train";
}

std::vector<std::string> python_command(const std::string& place) {
  const char* named = std::getenv("GOSSAMER_PYTHON");
  const fs::path here = folder_of_this_program(place);
  // In build/python of a build, else in site-packages.
  for (const fs::path& packages : {here / "../python", here / "../.."}) {
    const fs::path script = packages / "gossamer_command.py";
    if (!may_be_there(script)) continue;
    const fs::path own = packages / "../../.venv/bin/python3";
    const std::string other = named != nullptr ? named : "python3";
    return {may_be_there(own) ? own.lexically_normal().string() : other,
            script.lexically_normal().string()};
  }
  fail_argument(
      {.place = place,
       .what = "the Python package is not beside this program",
       .got = here.string(),
       .remedy = "install it as docs/install.md says, then `python3 -m gossamer " + place + "`"});
}

void fail_to_start_python(const std::string& place, const std::string& python, int error) {
  fail_outside(
      {.place = place,
       .what = std::string("cannot start Python: ") + std::strerror(error),
       .got = python,
       .remedy = error == EACCES
                     ? "let this user read and enter all folders on the way to it, and to the "
                       "Python that it is a link to; or run python3 -m gossamer " +
                           place + " with a Python of this user's"
                     : "install Python 3.10 or newer with matplotlib and Jinja2"});
}

}  // namespace gossamer
