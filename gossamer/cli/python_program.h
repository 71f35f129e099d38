#pragma once
/// The Python package that belongs to this program, and how its commands are started.

#include <filesystem>
#include <string>
#include <vector>

namespace gossamer {

/// Where this program is. `place` opens the message of the OutsideError.
std::filesystem::path folder_of_this_program(const std::string& place);

/// True for what the system does not let us see, too: its use then says why it cannot be used.
bool may_be_there(const std::filesystem::path& path);

/// The command line of the package's commands without its arguments: Python, then the script that
/// stands beside the package. Python is that of the project's environment where this program was
/// built there, else the shell's. std::invalid_argument where the package is not beside this
/// program.
std::vector<std::string> python_command(const std::string& place);

/// Whether the command of the Python package has started this program.
bool is_of_package();

/// How a user starts this program: by the command of the package that has started it, else by its
/// place in a build.
std::string program_as_typed();

/// gossamer-train, which the package's command names, see python/gossamer_command.py, else the one
/// beside this program.
std::filesystem::path training_program(const std::string& place);

/// Throws OutsideError for a Python that could not be started; `error` is an errno.
[[noreturn]] void fail_to_start_python(const std::string& place, const std::string& python,
                                       int error);

}  // namespace gossamer
