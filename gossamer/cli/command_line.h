#pragma once
/// Parsing a subcommand's line, in the same way for all of them.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "gossamer/cli/page.h"

namespace gossamer {

/// Takes a whole number from 1 up.
extern const CLI::Validator kFromOneUp;

/// Parses the arguments after the command `name`. Throws HelpAsked for --help, and
/// std::invalid_argument, with the nearest flag for one that there is not.
void parse_arguments(CLI::App& app, const std::string& name, std::vector<std::string> arguments);

/// The same with argv[0] for the command.
void parse_command_line(CLI::App& app, const std::string& name, int argc, char** argv);

/// The flag of `app` that is meant by a word such as "--hots" or "--learning-rate"; empty: none.
std::string nearest_flag(const CLI::App& app, const std::string& word);

/// Writes the whole file; throws OutsideError. `place` opens its message, `what` is what could not
/// be written.
void write_text_file(const std::string& place, const std::string& what, const std::string& path,
                     const std::string& text);

}  // namespace gossamer
